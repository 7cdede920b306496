package workspace

import "testing"

func TestEndsInCRLF(t *testing.T) {
	tree := newTree(t, map[string]string{
		".gitattributes":     "# comment\n*.bat text eol=crlf\n*.sh text eol=lf\n/win/** eol=crlf\nsub/*.txt eol=crlf\n* -other\n",
		"win/.gitattributes": "*.sh !eol\n*.bin binary\n",
	}, Options{})
	for path, want := range map[string]bool{
		"a.bat": true, "deep/er/a.bat": true, "a.sh": false, "a.go": false, "win/a.go": true, "win/x/a.go": true,
		"win/a.sh": false, "win/a.bin": false, "sub/a.txt": true, "a.txt": false, "sub/x/a.txt": false,
	} {
		if got := tree.EndsInCRLF(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}
