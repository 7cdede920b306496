package workshop

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"hone/sandbox"
)

func (w *Workshop) findKeys() (keys []place) {
	if w.userHome == "" {
		return nil
	}
	for _, name := range []string{
		".ssh", ".gnupg", ".aws", ".azure", ".kube", ".oci", ".password-store", ".vault-token", ".netrc", ".authinfo",
		".git-credentials", ".config/git/credentials", ".config/gh", ".config/hub", ".config/glab-cli", ".config/gcloud",
		".docker/config.json", ".config/containers/auth.json", ".npmrc", ".yarnrc", ".yarnrc.yml", ".config/npm",
		".config/yarn", ".config/pnpm", ".pypirc", ".config/pip", ".pip", ".condarc", ".config/pypoetry", ".config/uv",
		".cargo/credentials", ".cargo/credentials.toml", ".cargo/config", ".cargo/config.toml", ".m2/settings.xml", ".m2/settings-security.xml",
		".gradle/gradle.properties", ".gradle/init.gradle", ".gradle/init.d", ".gem/credentials", ".local/share/gem/credentials",
		".bundle/config", ".composer/auth.json", ".config/composer/auth.json", ".nuget/NuGet", ".config/NuGet",
		".terraformrc", ".terraform.d", ".pgpass", ".my.cnf", ".s3cfg", ".boto", ".fly/config.yml", ".heroku", ".wrangler",
		".local/share/keyrings", ".mozilla", ".config/google-chrome", ".config/chromium", ".thunderbird",
		".bash_history", ".zsh_history", ".python_history", ".node_repl_history", ".psql_history", ".mysql_history",
		".codex", ".claude", ".claude.json", ".gemini", ".qwen", ".config/opencode", ".local/share/opencode", ".aider.conf.yml",
	} {
		keys = append(keys, place{w.homePath(name), w.realPath(w.homePath(name))})
	}
	return keys
}

func (w *Workshop) secret(path string) bool {
	return slices.ContainsFunc(w.keys(), func(k place) bool { return sandbox.Within(k.name, path) || sandbox.Within(k.real, path) })
}

// Secret reports whether a path is known to contain the user's keys, or is in a
// directory that does.
func (w Workshop) Secret(path string) bool { return w.prepared().secret(path) }

// The paths that the policy names itself are left out. Only the usual paths are checked, because the trees are too large to
// search.
func (w *Workshop) credentials(named, shown []string) []string {
	var found []string
	hideAt := func(path string) {
		if exists(path) && !slices.Contains(named, path) && !slices.Contains(found, path) {
			found = append(found, path)
		}
	}
	for _, path := range []string{"/usr/local/etc", "/usr/etc/npmrc"} { // npm's global settings, for example, may contain tokens
		hideAt(path)
	}
	for _, dir := range w.read[w.system:] {
		for _, below := range []string{"", "etc", "conf"} {
			for _, name := range []string{
				"credentials", "credentials.toml", "credentials.json", ".netrc", ".npmrc", "npmrc", ".pypirc", "pip.conf", ".condarc",
				"settings.xml", "settings-security.xml", "gradle.properties", ".git-credentials", "auth.json", "auth.toml", "config.json",
			} {
				hideAt(filepath.Join(dir, below, name))
			}
		}
	}
	reals := make([]string, 0, len(shown))
	for _, dir := range shown {
		reals = append(reals, w.realPath(dir))
	}
	for _, k := range w.keys() {
		covers := func(dir string) bool { return sandbox.Within(dir, k.name) || sandbox.Within(dir, k.real) }
		if slices.ContainsFunc(shown, covers) || slices.ContainsFunc(reals, covers) {
			hideAt(k.name)
		}
	}
	return found
}

// maxSearched is how many names of a workspace are searched for sockets and FIFOs.
const maxSearched = 100_000

// Commands could talk to programs outside the walls through them. Outer directories come first, and no symlink is followed.
func endpoints(root string) []string {
	stores := []string{filepath.Join(root, ".hone"), filepath.Join(root, ".git", "objects")} // only objects, and many of them
	var found []string
	dirs := []string{root}
	for seen := 0; len(dirs) > 0 && seen < maxSearched; {
		dir := dirs[0]
		dirs = dirs[1:]
		entries, _ := os.ReadDir(dir) // commands cannot read what the user cannot read
		seen += len(entries)
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			switch {
			case e.Type()&(fs.ModeSocket|fs.ModeNamedPipe) != 0:
				found = append(found, path)
			case e.IsDir() && !slices.Contains(stores, path):
				dirs = append(dirs, path)
			}
		}
	}
	return found
}
