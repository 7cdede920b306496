package reader_test

import (
	"testing"

	"hone/check/reader"
)

func TestLog(t *testing.T) {
	for name, text := range map[string]string{
		"GitHub":      "2026-11-30T01:02:03.1234567Z ##[group]Run x\n2026-11-30T01:02:03.1234567Z \x1b[31ma:1:2: wrong\x1b[0m\n2026-11-30T01:02:03.1234567Z ##[error]Process completed with exit code 1.\n",
		"gh run view": "lint\tRun x\t\ufeff2026-11-30T01:02:03Z ##[group]Run x\nlint\tRun x\t2026-11-30T01:02:03Z a:1:2: wrong\nlint\tRun x\t2026-11-30T01:02:03Z ##[error]Process completed with exit code 1.\n",
		"GitLab":      "2026-11-30T01:02:03.123456Z 00O section_start:1700000000:step\r\x1b[0KRun x\n2026-11-30T01:02:03.123456Z 01O a:1:2: wrong\n2026-11-30T01:02:04.123456Z 01E Process completed with exit code 1.\n",
		"Jenkins":     "[2026-11-30T01:02:03.123Z] Run x\n[2026-11-30T01:02:03.123Z] a:1:2: wrong\n[2026-11-30T01:02:03.123Z] Process completed with exit code 1.\n",
		"none":        "Run x\na:1:2: wrong\nProcess completed with exit code 1.\n",
	} {
		parts := reader.Log(text)
		last := parts[len(parts)-1]
		if want := "Run x\na:1:2: wrong\nProcess completed with exit code 1.\n"; last.Text != want || !last.Failed {
			t.Errorf("%s: %+v", name, parts)
		}
	}
	parts := reader.Log("2026-11-30T01:02:03Z ##[group]Run a\n2026-11-30T01:02:03Z ok\n2026-11-30T01:02:03Z ##[group]Run b\n2026-11-30T01:02:03Z ##[error]bad\n")
	if len(parts) != 3 || parts[1].Failed || !parts[2].Failed {
		t.Errorf("%+v", parts)
	}
}
