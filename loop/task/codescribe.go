package task

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"hone/loop"
)

// compatible is the provider that CodeScribe calls oaic: a server of OpenAI's
// wire with variables of its own.
const compatible = "oaic"

// modelName is the first model that was named, in hone's spelling; empty if none
// was.
func modelName(in *loop.Input, names ...string) (string, error) {
	for _, name := range names {
		if name != "" {
			return codescribeModel(name, in.HasProvider)
		}
	}
	return "", nil
}

// codescribeModel is CodeScribe's name of a model in hone's spelling; a name
// that has one of hone's providers stays.
func codescribeModel(name string, hasProvider func(string) bool) (string, error) {
	if hasProvider(name) {
		return name, nil
	}
	prefix, rest, ok := strings.Cut(name, "-")
	switch {
	case isPath(name):
		return "", loop.Usage(fmt.Sprintf("model %s is a path, and hone runs no model itself", name),
			"serve it with Ollama, llama.cpp or vLLM, then: --model ollama/NAME, or --model openai/NAME --base-url URL")
	case !ok || rest == "":
	case prefix == "openai" || prefix == "anthropic" || prefix == compatible:
		return prefix + "/" + rest, nil
	case prefix == "argo":
		return "", loop.Usage(fmt.Sprintf("model %s: hone does not speak to Argo", name),
			"where Argo is reached by an OpenAI-compatible address: --model openai/"+rest+" --base-url URL")
	}
	return name, nil
}

// isPath reports whether a model's name is the path of one, as CodeScribe
// takes it for where it exists.
func isPath(name string) bool {
	if _, err := os.Stat(name); err == nil {
		return true
	}
	return filepath.IsAbs(name) || strings.HasPrefix(name, "/") || strings.HasPrefix(name, "./") || strings.HasPrefix(name, "../") || strings.HasPrefix(name, "~")
}
