package hone_test

import (
	"strings"
	"testing"

	"hone"
	"hone/check"
	"hone/model"
)

func TestUsableText(t *testing.T) {
	for _, tt := range []struct {
		finish     model.Finish
		sent, text string
		cause      string
	}{
		{model.Stop, "\nhello\n", "\nhello\n", ""},
		{model.Stop, "<think>Hm.</think>\n\nhello\n", "hello\n", ""},
		{model.Stop, "<think>Hm.", "", "it was empty"},
		{model.Stop, "", "", "it was empty"},
		{model.Length, "hel", "", "the output limit"},
	} {
		text, found := hone.UsableText(model.Reply{Finish: tt.finish, Parts: []model.Part{{Text: tt.sent}}})
		if text != tt.text || (found == nil) != (tt.cause == "") {
			t.Errorf("%q: %q, %v", tt.sent, text, found)
		}
		for _, f := range found {
			if f.Source != check.SourceReply || !f.Blocks() || !strings.Contains(f.Text, tt.cause) {
				t.Errorf("%q: %+v", tt.sent, f)
			}
		}
	}
}
