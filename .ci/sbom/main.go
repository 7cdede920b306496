// Command sbom writes the software bill of materials of a Go program, in CycloneDX's
// JSON form: the modules that the program itself says that it was built from. It has no
// time and no random serial number, so that the same program always has the same one.
//
//	go run ./.ci/sbom PROGRAM FILE
package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"
)

type bom struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	URL     string `json:"purl,omitempty"`
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("sbom: needs a program and the file to write")
	}
	info, err := buildinfo.ReadFile(os.Args[1])
	if err != nil {
		log.Fatalf("sbom: %v", err)
	}
	text, err := json.MarshalIndent(materials(info), "", "  ")
	if err != nil {
		log.Fatalf("sbom: %v", err)
	}
	if err := os.WriteFile(os.Args[2], append(text, '\n'), 0o644); err != nil {
		log.Fatalf("sbom: %v", err)
	}
}

func materials(info *buildinfo.BuildInfo) bom {
	b := bom{Format: "CycloneDX", Spec: "1.6", Version: 1}
	b.Metadata.Component = component{Type: "application", Name: info.Main.Path, Version: info.Main.Version}
	b.Components = append(b.Components, library("std", strings.TrimPrefix(info.GoVersion, "go")))
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		b.Components = append(b.Components, library(m.Path, m.Version))
	}
	return b
}

// library returns a Go module with its package URL.
func library(path, version string) component {
	return component{Type: "library", Name: path, Version: version, URL: fmt.Sprintf("pkg:golang/%s@%s", path, version)}
}
