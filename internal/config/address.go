package config

import (
	"net/url"
	"strings"
)

// mask stands for what may be a secret.
const mask = "xxxxx"

// MaskAddress returns an address as it may be shown and recorded (ruling G6), and what it
// masks in it, spelled as in the address: a password, a user without one, the values of the
// query and the fragment. The version of Azure's API is no secret. The scheme may be missing.
func MaskAddress(address string) (masked string, secrets []string) {
	hide := func(s string) string {
		if s == "" {
			return ""
		}
		secrets = append(secrets, s)
		return mask
	}
	scheme, rest, ok := strings.Cut(address, "://")
	if ok {
		scheme += "://"
	} else {
		scheme, rest = "", address
	}
	rest, fragment, hasFragment := strings.Cut(rest, "#")
	rest, query, hasQuery := strings.Cut(rest, "?")
	host, path, hasPath := strings.Cut(rest, "/")
	if _, err := url.Parse("http://" + host); err != nil && strings.Contains(path+query+fragment, "@") {
		return "an address with a password", []string{address} // nothing says where the password ends
	}
	masked = scheme
	if at := strings.LastIndexByte(host, '@'); at >= 0 {
		user, password, ok := strings.Cut(host[:at], ":")
		if ok {
			masked += user + ":" + hide(password) + "@"
		} else {
			masked += hide(user) + "@"
		}
		host = host[at+1:]
	}
	masked += host
	if hasPath {
		masked += "/" + path
	}
	if hasQuery {
		fields := strings.Split(query, "&")
		for i, field := range fields {
			switch name, value, ok := strings.Cut(field, "="); {
			case !ok:
				fields[i] = hide(field)
			case !strings.EqualFold(name, "api-version"):
				fields[i] = name + "=" + hide(value)
			}
		}
		masked += "?" + strings.Join(fields, "&")
	}
	if hasFragment {
		masked += "#" + hide(fragment)
	}
	return masked, secrets
}
