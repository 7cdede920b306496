package task

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"hone/internal/config"
	"hone/loop"
)

// compatible is the provider that CodeScribe calls oaic: a server with OpenAI's wire
// format and variables of its own.
const compatible = "oaic"

func modelName(in *loop.Input, typed string) (string, error) {
	names := strings.Split(typed, ",")
	for i, name := range names {
		var err error
		if names[i], err = codescribeModel(strings.TrimSpace(name), in.HasProvider); err != nil {
			return "", err
		}
	}
	return strings.Join(names, ","), nil
}

func maxTokens(in *loop.Input) error {
	for _, name := range []string{"CODESCRIBE_MAX_TOKENS", "CSLOOP_MAX_TOKENS"} {
		text := in.Getenv(name)
		if text == "" || config.MaxOutput.In(in.Values) != 0 {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n <= 0 {
			return loop.Usage(fmt.Sprintf("%s=%s is not a positive number of tokens", name, text), "for example: "+name+"=16384")
		}
		config.MaxOutput.Set(in.Values, n)
	}
	return nil
}

func codescribeModel(name string, hasProvider func(string) bool) (string, error) {
	if name == "" || hasProvider(name) {
		return name, nil
	}
	prefix, rest, ok := strings.Cut(name, "-")
	_, noFile := os.Stat(name) // CodeScribe takes the name of an existing file for a path, too
	switch {
	case noFile == nil, filepath.IsAbs(name), strings.ContainsAny(name[:1], "/~."):
		return "", loop.Usage(fmt.Sprintf("model %s is a path, but hone does not run models itself", name),
			"serve it with Ollama, llama.cpp or vLLM, then: --model ollama/NAME, or --model openai/NAME --base-url URL")
	case !ok || rest == "":
	case prefix == "openai" || prefix == "anthropic" || prefix == compatible:
		return prefix + "/" + rest, nil
	case prefix == "argo":
		return "", loop.Usage(fmt.Sprintf("model %s: hone does not support Argo", name),
			"if your Argo has an OpenAI-compatible address: --model openai/"+rest+" --base-url URL")
	}
	return name, nil
}
