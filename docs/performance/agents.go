package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
)

// agent returns an agent's program from PATH, or where .ci/needs installs agents.
func agent(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	cache, _ := os.UserCacheDir()
	found, _ := filepath.Glob(filepath.Join(cache, "hone-agents", "*", "node_modules", ".bin", name))
	if len(found) == 0 {
		return name
	}
	return found[0]
}

// codex is codex without its sandbox and without questions.
func (b *bench) codex() program {
	provider := `model_providers.bench={name="bench",base_url="%s/v1",env_key="OPENAI_API_KEY",wire_api="responses",supports_websockets=false}`
	return program{argv: []string{agent("codex"), "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-m", "gpt-5.3-codex",
		"-c", provider, "-c", "model_provider=bench", "-c", "web_search=disabled", "The check, sh ./check.sh, fails."}, state: filepath.Join(b.dir, "codex")}
}

// gemini is gemini-cli without questions.
func (b *bench) gemini() program {
	return program{argv: []string{agent("gemini"), "-m", "gemini-2.5-pro", "-y", "-p", "The check, sh ./check.sh, fails."}, state: filepath.Join(b.dir, "gemini"),
		env: []string{"GOOGLE_GEMINI_BASE_URL=%s", "GEMINI_API_KEY=bench", "GEMINI_CLI_TRUST_WORKSPACE=true", "GEMINI_CLI_NO_RELAUNCH=true"}}
}

// agent measures the four-turn job with an agent, which does it with its own shell. An agent may send more requests.
func (b *bench) agent(p program, tool, argument string) func() (figures, error) {
	var replies []reply
	for _, command := range []string{"cat a.txt", "echo two >a.txt", check} {
		replies = append(replies, reply{tool: tool, args: object{argument: command}})
	}
	replies = append(replies, reply{text: "Done."})
	return func() (figures, error) {
		settings := filepath.Join(p.state, "home", ".gemini", "settings.json")
		if err := os.MkdirAll(filepath.Dir(settings), 0o755); err != nil {
			return figures{}, err
		}
		if err := os.WriteFile(settings, []byte(`{"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false}}`), 0o600); err != nil {
			return figures{}, err
		}
		return b.play(job{program: p, session: &session{replies: replies, more: true}}, small())
	}
}

// responses returns the reply in the protocol of OpenAI's Responses API.
func (r reply) responses(id string) string {
	item := object{"type": "message", "id": "m" + id, "role": "assistant", "status": "completed", "content": []object{{"type": "output_text", "text": r.text, "annotations": []object{}}}}
	if r.tool != "" {
		args, _ := json.Marshal(r.args)
		item = object{"type": "function_call", "id": "f" + id, "call_id": id, "name": r.tool, "arguments": string(args), "status": "completed"}
	}
	usage := object{"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
	out := ""
	for _, e := range []object{
		{"type": "response.created", "response": object{"id": "r" + id}},
		{"type": "response.output_item.done", "output_index": 0, "item": item},
		{"type": "response.completed", "response": object{"id": "r" + id, "status": "completed", "output": []object{item}, "usage": usage}},
	} {
		out += "event: " + e["type"].(string) + "\n" + data(e)
	}
	return out
}

// content returns the reply in Gemini's protocol.
func (r reply) content(string) string {
	part := object{"text": r.text}
	if r.tool != "" {
		part = object{"functionCall": object{"name": r.tool, "args": r.args}}
	}
	return data(object{"candidates": []object{{"index": 0, "finishReason": "STOP", "content": object{"role": "model", "parts": []object{part}}}},
		"usageMetadata": object{"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110}})
}
