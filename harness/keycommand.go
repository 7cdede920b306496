package harness

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"hone/model"
	"hone/sandbox"
)

// keySource is how commands that print keys are run, and who learns the keys. A session has
// its models before it knows that.
type keySource struct {
	runner sandbox.Runner
	dir    string
	learn  func(key string)
}

const (
	// keyTimeout suffices for a vault. A command that asks the user to sign in is stopped.
	keyTimeout   = time.Minute
	maxKeyOutput = 64 << 10
)

// keyedModel is a model whose key a command prints. It keeps the key in memory only, and
// never records or shows it.
type keyedModel struct {
	*keySource
	line    string
	environ []string
	open    func(key string) (model.Model, error)

	mu      sync.Mutex
	key     string
	current model.Model
}

var (
	_ model.Model = (*keyedModel)(nil)
	_ Prober      = (*keyedModel)(nil)
)

// Generate makes one attempt, and another one with a new key if the server refuses the first
// because of its key: that costs nothing.
func (m *keyedModel) Generate(ctx context.Context, req model.Request) (reply model.Reply, err error) {
	err = m.with(ctx, func(asked model.Model) (err error) {
		reply, err = asked.Generate(ctx, req)
		return err
	})
	return reply, err
}

// Probe implements [Prober].
func (m *keyedModel) Probe(ctx context.Context) error {
	return m.with(ctx, func(asked model.Model) error {
		if p, ok := asked.(Prober); ok {
			return p.Probe(ctx)
		}
		return nil
	})
}

func (m *keyedModel) with(ctx context.Context, do func(model.Model) error) error {
	asked, key, err := m.keyed(ctx, "")
	if err != nil {
		return err
	}
	if err = do(asked); !refusesKey(err) {
		return err
	}
	again, newKey, failed := m.keyed(ctx, key)
	switch {
	case failed != nil:
		return failed
	case newKey == key: // the same command knows no better
		return err
	}
	return do(again)
}

// Some servers say 400 or 403 if a token has expired.
func refusesKey(err error) bool {
	var e *model.Error
	return errors.As(err, &e) && !e.Streamed && (e.Status == http.StatusUnauthorized ||
		e.Rejected() && e.Status != 0 && strings.Contains(strings.ToLower(e.Message), "expired"))
}

// keyed returns the model with a key other than the refused one, unless the command prints
// that again.
func (m *keyedModel) keyed(ctx context.Context, refused string) (model.Model, string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.key != "" && m.key != refused {
		return m.current, m.key, nil
	}
	key, err := m.run(ctx)
	if err != nil {
		return nil, "", err
	}
	m.learn(key)
	if m.current == nil || key != m.key {
		if m.current, err = m.open(key); err != nil {
			return nil, "", err
		}
	}
	m.key = key
	return m.current, key, nil
}

// What it prints may be a secret, and so stays unseen, also in the error.
func (m *keyedModel) run(ctx context.Context) (string, error) {
	got, err := m.runner.Run(ctx, sandbox.Command{Argv: sandbox.Shell(m.line), Dir: m.dir, Env: sandbox.OwnEnviron(m.environ, m.dir), Timeout: keyTimeout, MaxOutput: maxKeyOutput})
	key, why := strings.TrimSpace(string(got.Stdout)), ""
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil:
		why = err.Error()
	case got.TimedOut:
		why = fmt.Sprintf("it did not end within %s", keyTimeout)
	case got.Exit != 0:
		why = fmt.Sprintf("exit status %d", got.Exit)
	case key == "":
		why = "it printed no key"
	case strings.ContainsAny(key, " \t\r\n"):
		why = "it printed more than a key"
	case len(key) < minKeyLength:
		why = fmt.Sprintf("it printed fewer than %d characters, which is no key", minKeyLength)
	default:
		return key, nil
	}
	return "", &model.Error{Kind: model.Auth, Message: "key-command: " + why, Hint: "run it in a terminal to see what it prints: " + m.line}
}
