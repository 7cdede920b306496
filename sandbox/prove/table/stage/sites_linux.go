package stage

import (
	"hone/sandbox"
)

// Git gives an attempt a repository whose configuration and hooks are protected in a
// writable directory. Only their state afterwards counts, because walls may restore it.
func Git(a Attempt) Attempt {
	a.Outside, a.Intact, a.Policy = true, []string{".git/config", ".git/hooks"}, protect(".git/config", ".git/hooks")
	a.Prepare = func(_ *Stage, s Scene) (string, error) {
		if err := s.Write(s.Work(".git", "hooks", "sample"), "#!/bin/sh\n"); err != nil {
			return "", err
		}
		return "", s.Write(s.Work(".git", "config"), "[core]\n")
	}
	return a
}

// Missing gives an attempt a directory with a protected .config/hone.toml that does not
// exist.
func Missing(a Attempt) Attempt {
	a.Intact = []string{".config/hone.toml"}
	a.Policy = func(s Scene, p *sandbox.Policy) {
		protect(".config/hone.toml")(s, p)
		p.Placeholders[s.Work(".config", "hone.toml")] = sandbox.Placeholder{}
	}
	a.Prepare = func(_ *Stage, s Scene) (string, error) {
		return "", s.Write(s.Work(".config", "other"), "untouched\n")
	}
	return a
}

// Secret gives an attempt a file with the secret in its directory, which the policy hides
// itself, or with a directory around it.
func Secret(a Attempt, file, hide string) Attempt {
	a.Prepare = func(st *Stage, s Scene) (string, error) { return "", s.Write(s.Work(file), st.Value) }
	a.Policy = func(s Scene, p *sandbox.Policy) { p.Hide = append(p.Hide, s.Work()+"/"+hide) }
	return a
}

// Cache gives an attempt a directory outside, with files, of which there is an overlay
// inside, or which is read-only behind walls without overlays.
func Cache(a Attempt) Attempt {
	a.Outside = true
	a.Prepare = func(_ *Stage, s Scene) (string, error) {
		if err := s.Write(s.Cache("dir", "file"), "untouched\n"); err != nil {
			return "", err
		}
		return "", s.Write(s.Cache("file"), "untouched\n")
	}
	a.Policy = func(s Scene, p *sandbox.Policy) {
		p.Read = append(p.Read, s.Cache())
		p.Overlays = append(p.Overlays, sandbox.Overlay{Path: s.Cache(), Lower: s.Cache()})
	}
	return a
}

func protect(paths ...string) func(Scene, *sandbox.Policy) {
	return func(s Scene, p *sandbox.Policy) {
		for _, path := range paths {
			p.Read = append(p.Read, s.Work(path))
		}
	}
}
