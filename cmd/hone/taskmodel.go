package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// compatible is the provider that CodeScribe calls oaic: a server of OpenAI's
// wire with variables of its own. Only task names it.
const compatible = "oaic"

// taskModel is the model that a task names, in hone's spelling. HONE_MODEL
// goes before CodeScribe's variable. Empty means that none was named.
func (a *app) taskModel(flag string) (string, error) {
	for _, name := range []string{flag, a.env("HONE_MODEL"), a.env("CODESCRIBE_MODEL")} {
		if name != "" {
			return codescribeModel(name)
		}
	}
	return "", nil
}

// codescribeModel is CodeScribe's name of a model in hone's spelling; a name
// of hone's own stays (ruling S10).
func codescribeModel(name string) (string, error) {
	if _, _, err := (modelSettings{Name: name}).split(); err == nil {
		return name, nil
	}
	prefix, rest, ok := strings.Cut(name, "-")
	switch {
	case isPath(name):
		return "", usage(fmt.Sprintf("model %s is a path, and hone runs no model itself", name),
			"serve it with Ollama, llama.cpp or vLLM, then: --model ollama/NAME, or --model openai/NAME --base-url URL")
	case !ok || rest == "":
	case prefix == "openai" || prefix == "anthropic" || prefix == compatible:
		return prefix + "/" + rest, nil
	case prefix == "argo":
		return "", usage(fmt.Sprintf("model %s: hone does not speak to Argo", name),
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
