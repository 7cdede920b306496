package web

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"hone/cmd/hone/failure"
)

// anyPort is an address at which the system chooses the port.
const anyPort = "127.0.0.1:0"

// ListenFlags say where hone web listens, and how browsers on other machines sign in. The zero
// value is any port of 127.0.0.1.
type ListenFlags struct {
	address             string // HOST:PORT
	cert, key, password string // names of files; empty if not given
}

// Register adds the flags to a command.
func (f *ListenFlags) Register(fs *pflag.FlagSet) {
	fs.StringVar(&f.address, "listen", anyPort, "listen on `HOST:PORT`; if other machines can reach it, the files below are needed")
	fs.StringVar(&f.cert, "tls-cert", "", "`FILE` with the certificate of the server in PEM, followed by its intermediate certificates")
	fs.StringVar(&f.key, "tls-key", "", "`FILE` with the private key of the certificate in PEM")
	fs.StringVar(&f.password, "password-file", "", "`FILE` with the password, in one line")
}

// Listen listens. remote is nil if only this machine can reach the address; it refuses other
// addresses without what they need.
func (f ListenFlags) Listen() (l net.Listener, remote *Remote, err error) {
	f.address = cmp.Or(f.address, anyPort)
	if f.cert != "" || f.key != "" || f.password != "" {
		for _, flag := range []struct{ name, value string }{{"--tls-cert", f.cert}, {"--tls-key", f.key}, {"--password-file", f.password}} {
			if flag.value == "" {
				return nil, nil, failure.Usage("a server that other machines can reach needs "+flag.name,
					fmt.Sprintf("hone web --listen %s --tls-cert FILE --tls-key FILE --password-file FILE", f.address))
			}
		}
		host, _, err := net.SplitHostPort(f.address)
		if err != nil {
			return nil, nil, failure.Usage("--listen: "+err.Error(), "hone web --listen HOST:PORT")
		}
		if net.ParseIP(host).IsUnspecified() {
			host = ""
		}
		remote = &Remote{}
		if remote.Password, err = readPassword(f.password); err != nil {
			return nil, nil, err
		}
		if remote.Certificate, remote.Name, err = f.certificate(host); err != nil {
			return nil, nil, err
		}
	} else if at, err := net.ResolveTCPAddr("tcp", f.address); err != nil {
		return nil, nil, failure.Usage("--listen: "+err.Error(), "hone web --listen 127.0.0.1:8080")
	} else if at.IP == nil || !at.IP.IsLoopback() {
		return nil, nil, failure.Usage(fmt.Sprintf("--listen %s: other machines can reach this address, so it needs a certificate and a password", f.address),
			fmt.Sprintf("hone web --listen %s --tls-cert FILE --tls-key FILE --password-file FILE, or forward a port of 127.0.0.1 with ssh -L; see hone help web", f.address))
	}
	if l, err = net.Listen("tcp", f.address); err != nil {
		return nil, nil, failure.Of(err, "hone web --listen HOST:PORT with another port, or without --listen")
	}
	return l, remote, nil
}

// The name is the host if possible.
func (f ListenFlags) certificate(host string) (tls.Certificate, string, error) {
	next := fmt.Sprintf("mkcert %[1]s, or openssl req -x509 -newkey rsa:3072 -nodes -days 90 -keyout key.pem -out cert.pem -subj /CN=hone -addext subjectAltName=DNS:%[1]s", cmp.Or(host, "HOST"))
	if net.ParseIP(host) != nil {
		next = strings.Replace(next, "DNS:", "IP:", 1)
	}
	if err := private("--tls-key", f.key); err != nil {
		return tls.Certificate{}, "", err
	}
	c, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return c, "", failure.Usage(fmt.Sprintf("--tls-cert %s, --tls-key %s: %v", f.cert, f.key, err), next)
	}
	if time.Now().After(c.Leaf.NotAfter) {
		return c, "", failure.Usage(fmt.Sprintf("--tls-cert %s: the certificate expired on %s", f.cert, c.Leaf.NotAfter.Local().Format(time.DateTime)), next)
	}
	names := slices.DeleteFunc(slices.Clone(c.Leaf.DNSNames), func(n string) bool { return strings.HasPrefix(n, "*") })
	for _, ip := range c.Leaf.IPAddresses {
		names = append(names, ip.String())
	}
	for _, name := range append([]string{host}, names...) {
		if name != "" && c.Leaf.VerifyHostname(name) == nil {
			return c, name, nil
		}
	}
	return c, "", failure.Usage(fmt.Sprintf("--tls-cert %s: the certificate is not for this server", f.cert), next)
}

// If the file cannot be inspected, it returns nil: opening the file fails later.
func private(flag, name string) error {
	about, err := os.Stat(name)
	if err != nil || runtime.GOOS == "windows" { // whose modes do not tell
		return nil
	}
	if mode := about.Mode().Perm(); mode&0o077 != 0 {
		return failure.Usage(fmt.Sprintf("%s %s: other users of this machine can read it (mode %03o)", flag, name, mode), "chmod 600 "+name)
	}
	return nil
}

// minPassword is the minimum length of a password, in characters.
const minPassword = 12

// Only the user can read the file.
func readPassword(name string) (string, error) {
	bad := func(format string, args ...any) (string, error) {
		return "", failure.Usage("--password-file "+name+": "+fmt.Sprintf(format, args...), fmt.Sprintf("(umask 077; openssl rand -base64 24 >%s)", name))
	}
	if err := private("--password-file", name); err != nil {
		return "", err
	}
	file, err := os.Open(name)
	if err != nil {
		return bad("%v", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, 4<<10))
	if err != nil {
		return bad("%v", err)
	}
	password := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	switch length := utf8.RuneCountInString(password); {
	case password == "":
		return bad("it is empty")
	case strings.ContainsAny(password, "\r\n"):
		return bad("it has more than one line")
	case length < minPassword:
		return bad("a password needs at least %d characters, this one has %d", minPassword, length)
	}
	return password, nil
}
