package secret

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"hone/internal/lazyregexp"
	"hone/workspace/treepath"
)

// Values returns the secret values in a withheld file, so that they can be
// Values of a [Guard]. They are not sorted and may repeat.
//
// Of a file that is secret by its name, or of a settings file with credentials,
// these are: the value of every name that means a secret (password, token,
// key), unless the value could be part of ordinary text; every text that looks
// generated; and the login of every URL. Of other files these are the secrets
// that the guard finds. A private key is one value per line.
//
// A value could be part of ordinary text if it is shorter than 8 bytes, or
// looks like a word, a number, a path, an address, a version, or a placeholder.
func (g *Guard) Values(path string, content []byte) []string {
	if g == nil {
		return nil
	}
	c := collector{}
	text := string(content)
	for _, s := range findAll(formats(), text) {
		c.addLines(text[s.start:s.end])
	}
	if secretName(path) != "" || secretConfig(path, content) != "" {
		c.addFile(treepath.Base(treepath.Fold(path)), text)
	}
	return c.values
}

// Credentials returns the secret values of a setting in git's configuration:
// the logins of URLs in its name and value, and the value if the name means
// a secret. They are not sorted and may repeat.
func Credentials(name, value string) []string {
	c := collector{}
	c.addLogins(name)
	c.addLogins(value)
	c.addPairs(value) // of a credential helper that is a script
	if last := name[strings.LastIndexByte(name, '.')+1:]; strings.EqualFold(last, "extraheader") {
		c.addSchemes(value)
		_, header, _ := strings.Cut(value, ":")
		c.addNamed("secret", strings.TrimSpace(header))
	} else {
		c.addNamed(last, value)
	}
	return c.values
}

type collector struct{ values []string }

// maxValue is the length of the longest value in bytes. A longer one is split.
const maxValue = 512

// syntax matches what JSON has outside of strings.
var syntax = lazyregexp.New(`^(?:[][{},:0-9.eE+\s-]|true|false|null)+$`)

// add adds a value, unless replacing it could break the syntax of a JSON text.
func (c *collector) add(value string) {
	for len(value) >= minKnown && !syntax.MatchString(value) {
		n := min(len(value), maxValue)
		c.values = append(c.values, value[:n])
		value = value[n:]
	}
}

// The header and footer of a private key are left out.
func (c *collector) addLines(secret string) {
	if !strings.ContainsAny(secret, "\n\\") {
		c.add(secret)
		return
	}
	for line := range strings.FieldsFuncSeq(secret, func(r rune) bool { return !isBase64(r) }) {
		if len(line) >= 16 && isRandom(line) {
			c.add(line)
		}
	}
}

func isBase64(r rune) bool {
	return r < 128 && isAlnum(byte(r)) || strings.ContainsRune("+/=", r)
}

func (c *collector) addFile(name, text string) {
	for line := range strings.Lines(text) {
		m := assignedLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		value := strings.TrimSpace(m[2])
		if quote := value[0]; quote == '"' || quote == '\'' {
			continue // addPairs finds it
		}
		c.addNamed(m[1], strings.TrimSuffix(value, ","))
		if before, _, ok := strings.Cut(value, " #"); ok {
			c.addNamed(m[1], strings.TrimSpace(before))
		}
	}
	c.addPairs(text)
	c.addLogins(text)
	c.addSchemes(text)
	c.addGenerated(text)
	switch name {
	case ".netrc", "_netrc":
		for _, m := range netrcLogin.FindAllStringSubmatch(text, -1) {
			c.addNamed("password", m[1])
		}
	case ".pgpass", ".htpasswd":
		for line := range strings.Lines(text) {
			c.addNamed("password", strings.TrimSpace(line[strings.LastIndexByte(line, ':')+1:]))
		}
	case ".vault-token":
		c.addNamed("token", strings.TrimSpace(text))
	}
}

var (
	// assignedLine is NAME=value, name: value, or export NAME=value.
	assignedLine = lazyregexp.New(`^(?:export\s+)?["']?([A-Za-z_][\w.-]*)["']?\s*[:=]\s*(.+)$`)
	assignedPair = lazyregexp.New(`([A-Za-z_][\w.-]*)["']?\s*[:=]\s*("(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^\s"',;{}\[\]()]+)`)
	escaped      = lazyregexp.New(`\\(.)`)
	generated    = lazyregexp.New(`[A-Za-z0-9_+~-]{16,}={0,2}`)
	netrcLogin   = lazyregexp.New(`(?i)\bpassword\s+(\S+)`)
	scheme       = lazyregexp.New(`(?i)\b(?:basic|bearer|token)\s+([^\s"',;]+)`)
	login        = lazyregexp.New(`://([^\s/?#"'<>:@]*)(:[^\s/?#"'<>]*)?@`)
)

func (c *collector) addGenerated(text string) {
	for _, token := range generated.FindAllString(text, -1) {
		if isGenerated(token) {
			c.add(token)
		}
	}
}

func (c *collector) addPairs(text string) {
	for _, m := range assignedPair.FindAllStringSubmatch(text, -1) {
		value := strings.Trim(m[2], `"'`)
		c.addNamed(m[1], value)
		if m[2][0] != '"' {
			continue
		}
		unquoted, err := strconv.Unquote(m[2])
		if err != nil { // a shell's
			unquoted = escaped.ReplaceAllString(value, "$1")
		}
		if unquoted != value {
			c.addNamed(m[1], unquoted)
		}
	}
}

func (c *collector) addNamed(name, value string) {
	if !NamesSecret(name) || isOrdinary(value) {
		return
	}
	c.add(value)
	c.addParts(value)
	decoded, err := base64.StdEncoding.DecodeString(value)
	if err != nil || strings.ContainsFunc(string(decoded), func(r rune) bool { return !unicode.IsPrint(r) }) {
		return
	}
	if _, password, ok := strings.Cut(string(decoded), ":"); ok && !isOrdinary(password) { // user:password in base64
		c.add(password)
	}
}

func (c *collector) addSchemes(text string) {
	for _, m := range scheme.FindAllStringSubmatch(text, -1) {
		c.addNamed("token", m[1])
	}
}

// A user without a password is a token.
func (c *collector) addLogins(text string) {
	for _, m := range login.FindAllStringSubmatch(text, -1) {
		secret := m[1]
		if m[2] != "" {
			secret = m[2][1:]
		}
		c.addNamed("password", secret)
		if unescaped, err := url.PathUnescape(secret); err == nil && unescaped != secret {
			c.addNamed("password", unescaped)
		}
	}
}

// NamesSecret reports whether the value of a name is a secret.
func NamesSecret(name string) bool {
	if name == "PWD" { // of a shell
		return false
	}
	words := nameWords(name)
	if namesOther(words) {
		return false
	}
	for _, word := range words {
		switch word {
		case "pass", "pw", "pwd", "key", "keys", "auth", "authorization", "private", "salt", "cookie", "dsn", "credential", "credentials", "pepper":
			return true
		}
	}
	joined := strings.Join(words, "")
	for _, part := range []string{"password", "passwd", "passphrase", "secret", "token", "apikey", "accesskey", "connectionstring"} {
		if strings.Contains(joined, part) {
			return true
		}
	}
	return false
}

// namesOther reports whether the last word of a name says that its value is no secret.
func namesOther(words []string) bool {
	if len(words) == 0 {
		return false
	}
	switch words[len(words)-1] {
	case "type", "alg", "algorithm", "name", "id", "file", "path", "dir", "url", "uri", "host", "port", "user", "username", "expiry", "expires", "in",
		"ttl", "age", "size", "length", "bits", "header", "prefix", "issuer", "audience", "endpoint", "region", "method", "mode", "version", "format", "enabled", "helper",
		"env", "environment", "stage", "zone", "profile", "level", "locale":
		return true
	}
	return false
}

func nameWords(name string) []string {
	var b strings.Builder
	for i := range len(name) {
		switch {
		case !isAlnum(name[i]):
			b.WriteByte(' ')
			continue
		case i > 0 && name[i] >= 'A' && name[i] <= 'Z' && name[i-1] >= 'a' && name[i-1] <= 'z':
			b.WriteByte(' ')
		}
		b.WriteByte(name[i])
	}
	return strings.Fields(strings.ToLower(b.String()))
}

var (
	words      = lazyregexp.New(`^[A-Za-z]+([-_ ./:@][A-Za-z]+)*$`)
	identifier = lazyregexp.New(`^([A-Za-z]+[0-9]{0,3}|[0-9]{1,4})([-_. /:]([A-Za-z]+[0-9]{0,3}|[0-9]{1,4}))+$`)
	numbers    = lazyregexp.New(`^[-+0-9.,:/_ ]+$`)
	location   = lazyregexp.New(`^(\.{0,2}/|~/|[A-Za-z]:\\)[\w./\\ -]*$|^[a-z][a-z0-9+.-]*://`)
	hostOrMail = lazyregexp.New(`^([\w.+-]+@)?[a-z0-9-]+(\.[a-z0-9-]+)*\.[a-z]{2,}(:[0-9]+)?$`)
)

// isOrdinary reports whether a value could be part of ordinary text, so that
// redacting it everywhere would make that unreadable.
func isOrdinary(value string) bool {
	switch {
	case len(value) < minKnown, isPlaceholder(value), hostOrMail.MatchString(value):
		return true
	case location.MatchString(value): // unless a part of it is no name
		return strings.Contains(value, "://") || strings.Count(value, "/") > 2 || !slices.ContainsFunc(strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune("/\\. ", r) }), isGenerated)
	case words.MatchString(value):
		return !isPassphrase(value)
	}
	return len(value) < 16 && numbers.MatchString(value) || len(value) < 12 && identifier.MatchString(value)
}

// isPassphrase reports whether letters are more than a word or a name: several
// words with hyphens or spaces, or a long mixture of both cases.
func isPassphrase(value string) bool {
	if strings.ContainsAny(value, "_./:@") {
		return false
	}
	if strings.ContainsAny(value, "- ") {
		return len(value) >= 16
	}
	return len(value) >= 20 && mixesCases(value)
}

// Names in camel case have fewer capital letters.
func mixesCases(text string) bool {
	capitals := 0
	for i := range len(text) {
		if text[i] >= 'A' && text[i] <= 'Z' {
			capitals++
		}
	}
	return capitals*4 >= len(text) && capitals*4 <= 3*len(text)
}

// isGenerated reports whether a token looks generated, whatever its name:
// letters and digits or both cases alternate, which they seldom do in words,
// dates and versions.
func isGenerated(token string) bool {
	changes := 0
	for i := 1; i < len(token); i++ {
		a, b := token[i-1], token[i]
		if isLetter(a) && isDigit(b) || isDigit(a) && isLetter(b) {
			changes++
		}
	}
	long := len(token) >= 24 && strings.ContainsAny(token, "0123456789") && mixesCases(token)
	return (changes >= 4 || long) && isRandom(token)
}
