package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"hone/cmd/hone/failure"
	"hone/cmd/hone/language"
	"hone/internal/config"
)

// offerConfig writes a .config/hone.toml that offers a check, and to protect
// what the languages are tested by, or says what could be added to the one that
// is there. The starter files may include one of the loop's own. Without a
// language it does nothing unless the loop needs a check.
func (a *app) offerConfig(root string, ls []language.Language, starter, needsCheck bool) error {
	if len(ls) == 0 && (starter || !needsCheck) {
		return nil
	}
	report := "wrote   " + config.HonePath + ", with the check commented out"
	if len(ls) > 0 {
		report = "wrote   " + config.HonePath + ", with the check and the protected files commented out"
	}
	err := fs.ErrExist
	if !starter {
		err = put(root, config.HonePath, []byte(language.Config(ls)))
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		report = a.addition(root, ls, starter)
	case err != nil:
		return failure.Of(fmt.Errorf("write %s: %w", config.HonePath, err), "hone doctor")
	}
	if report != "" {
		_, err = fmt.Fprintln(a.out, report)
		return err
	}
	return nil
}

// addition says what could be added to the .config/hone.toml that exists. If it
// is a starter file it was already named.
func (a *app) addition(root string, ls []language.Language, starter bool) string {
	line := language.ProtectLine(ls)
	lines := ":\n\n    [check]\n    " + line + "\n"
	known := len(ls) == 0 || a.knowsProtect(root, line)
	switch kept := "kept    " + config.HonePath + ", which already exists"; {
	case starter && known:
		return ""
	case starter:
		return "to protect the tests, you could add to " + config.HonePath + lines
	case known:
		return kept
	default:
		return kept + "; you could add" + lines
	}
}

// knowsProtect reports whether a project's file says what is protected, or
// has the line, be it as a comment.
func (a *app) knowsProtect(root, line string) bool {
	if file, err := a.loadConfig(root, "", nil); err != nil || file.Check.Protect != nil {
		return err == nil
	}
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(config.HonePath)))
	return err == nil && strings.Contains(string(text), line)
}
