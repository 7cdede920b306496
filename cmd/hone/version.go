package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func (a *app) versionCommand() *cobra.Command {
	return helped("version", &cobra.Command{
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error { return a.printVersion() },
	})
}

func (a *app) printVersion() error {
	_, err := fmt.Fprintf(a.out, "hone %s, %s, %s/%s\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

func version() string {
	if Version != "devel" {
		return Version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return Version + "-" + s.Value[:12]
		}
	}
	return Version
}
