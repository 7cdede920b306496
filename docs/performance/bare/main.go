// Command bare is the floor of the table: a minimal program that lets a model edit files. It speaks
// OpenAI's chat protocol with streaming, has the tools read, edit and bash, and records, checks and
// protects nothing. Without arguments it does nothing, like an empty program that imports net/http.
//
//	bare URL
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/exec"
	"strings"
)

type call struct {
	Index    int      `json:"index"`
	ID       string   `json:"id,omitempty"`
	Type     string   `json:"type,omitempty"`
	Function function `json:"function"`
}

type function struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

type message struct {
	Role       string `json:"role"`
	Content    string `json:"content"`
	ToolCalls  []call `json:"tool_calls,omitempty"`
	ToolCallID string `json:"tool_call_id,omitempty"`
}

type request struct {
	Model    string          `json:"model"`
	Stream   bool            `json:"stream"`
	Messages []message       `json:"messages"`
	Tools    json.RawMessage `json:"tools"`
}

type chunk struct {
	Choices []struct {
		Delta message `json:"delta"`
	} `json:"choices"`
}

type arguments struct {
	Path    string `json:"path"`
	Edits   []edit `json:"edits"`
	Command string `json:"command"`
}

type edit struct {
	OldText string `json:"oldText"`
	NewText string `json:"newText"`
}

const tools = `[
{"type":"function","function":{"name":"read","description":"Read a file.","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}},
{"type":"function","function":{"name":"edit","description":"Replace text in a file.","parameters":{"type":"object","properties":{"path":{"type":"string"},"edits":{"type":"array","items":{"type":"object","properties":{"oldText":{"type":"string"},"newText":{"type":"string"}}}}},"required":["path","edits"]}}},
{"type":"function","function":{"name":"bash","description":"Run a command.","parameters":{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}}}]`

func main() {
	if len(os.Args) < 2 {
		return
	}
	r := request{Model: "bench", Stream: true, Tools: json.RawMessage(tools), Messages: []message{
		{Role: "system", Content: "You edit files with tools until the check passes."},
		{Role: "user", Content: "The check is: sh ./check.sh. It fails."}}}
	for {
		reply, err := send(os.Args[1], r)
		if err != nil {
			log.Fatal(err)
		}
		if len(reply.ToolCalls) == 0 {
			return
		}
		r.Messages = append(r.Messages, reply)
		for _, c := range reply.ToolCalls {
			r.Messages = append(r.Messages, message{Role: "tool", ToolCallID: c.ID, Content: run(c.Function)})
		}
	}
}

// send returns the model's reply.
func send(url string, r request) (message, error) {
	reply := message{Role: "assistant"}
	body, err := json.Marshal(r)
	if err != nil {
		return reply, err
	}
	answer, err := http.Post(url+"/chat/completions", "application/json", bytes.NewReader(body))
	if err != nil {
		return reply, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return reply, fmt.Errorf("the server answers %s", answer.Status)
	}
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		if err := add(&reply, data); err != nil {
			return reply, err
		}
	}
	return reply, lines.Err()
}

// add adds one event of the stream to the reply.
func add(reply *message, data string) error {
	var c chunk
	if err := json.Unmarshal([]byte(data), &c); err != nil {
		return err
	}
	for _, choice := range c.Choices {
		reply.Content += choice.Delta.Content
		for _, part := range choice.Delta.ToolCalls {
			if part.Index == len(reply.ToolCalls) {
				reply.ToolCalls = append(reply.ToolCalls, call{Index: part.Index, ID: part.ID, Type: "function", Function: function{Name: part.Function.Name}})
			}
			reply.ToolCalls[part.Index].Function.Arguments += part.Function.Arguments
		}
	}
	return nil
}

// run returns the result of a tool call.
func run(f function) string {
	var args arguments
	if err := json.Unmarshal([]byte(f.Arguments), &args); err != nil {
		return err.Error()
	}
	if f.Name == "bash" {
		out, err := exec.Command("bash", "-c", args.Command).CombinedOutput()
		return fmt.Sprintf("%s\n%v", out, err)
	}
	text, err := os.ReadFile(args.Path)
	if f.Name == "edit" && err == nil {
		for _, e := range args.Edits {
			text = bytes.Replace(text, []byte(e.OldText), []byte(e.NewText), 1)
		}
		err = os.WriteFile(args.Path, text, 0o644)
	}
	if err != nil {
		return err.Error()
	}
	return string(text)
}
