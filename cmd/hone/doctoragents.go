package main

import (
	"maps"
	"os/exec"
	"slices"

	"hone/loop"
)

// lookAtAgents checks the command-line agents of a directory's configuration. A
// faulty or untrusted configuration is reported by another check.
func (a *app) lookAtAgents(dir string) []diagnosis {
	_, file, _ := a.trustedConfig(dir)
	var looks []diagnosis
	for _, name := range slices.Sorted(maps.Keys(file.Commands)) {
		looks = append(looks, a.lookAtAgent(loop.Model{Name: "command/" + name, Agent: &loop.Agent{Name: name, Agent: file.Commands[name], Asked: file.Commands[name].Model}}))
	}
	return looks
}

func (a *app) lookAtAgent(m loop.Model) diagnosis {
	program := m.Agent.Argv[0]
	at, err := exec.LookPath(program)
	if err != nil {
		return amiss("agent", m.Name+": "+program+" is not on your PATH", "install it, or write its full path in argv")
	}
	if m.Agent.Asked == "" {
		m.Agent.Asked = "NAME" // a role may name the model
	}
	if err := a.host().Ready(m); err != nil {
		return amiss("agent", m.Name+": "+err.Error(), "")
	}
	found := m.Name + ": " + at
	if p := m.Agent.Wire; p != "" {
		found += ", which reaches " + p + " through a forwarder"
	}
	return diagnosis{what: "agent", found: found, hint: m.Exposed()}
}
