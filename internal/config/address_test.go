package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMaskAddress(t *testing.T) {
	for _, test := range []struct {
		address, masked string
		secrets         []string
	}{
		{"", "", nil},
		{"http://h:1/v1", "http://h:1/v1", nil},
		{"127.0.0.1:11434", "127.0.0.1:11434", nil},
		{"http://u:p%40w@h/v1", "http://u:xxxxx@h/v1", []string{"p%40w"}},
		{"u:pw@h:1/v1", "u:xxxxx@h:1/v1", []string{"pw"}},
		{"http://token@h/v1", "http://xxxxx@h/v1", []string{"token"}},
		{"http://u:@h", "http://u:@h", nil},
		{"http://u:p@w@h", "http://u:xxxxx@h", []string{"p@w"}},
		{"http://h/@cf/v1", "http://h/@cf/v1", nil},
		{"http://h/v1?key=a=b&c", "http://h/v1?key=xxxxx&xxxxx", []string{"a=b", "c"}},
		{"http://h?key=", "http://h?key=", nil},
		{"http://h?API-Version=7&sig=s", "http://h?API-Version=7&sig=xxxxx", []string{"s"}},
		{"http://h/#f?x=y", "http://h/#xxxxx", []string{"f?x=y"}},
		{"h:1/v1?key=s", "h:1/v1?key=xxxxx", []string{"s"}},
		{"http://u:p/w@h/v1", "an address with a password", []string{"http://u:p/w@h/v1"}},
		{"http://u:p?w@h/v1", "an address with a password", []string{"http://u:p?w@h/v1"}},
	} {
		masked, secrets := MaskAddress(test.address)
		if diff := cmp.Diff(test.secrets, secrets); masked != test.masked || diff != "" {
			t.Errorf("%q is shown as %q, want %q; its secrets (-want +got):\n%s", test.address, masked, test.masked, diff)
		}
		if again, _ := MaskAddress(masked); again != masked {
			t.Errorf("%q is masked again, as %q", masked, again)
		}
	}
}
