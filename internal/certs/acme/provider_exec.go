package acme

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// commandTime is how long a command may take.
const commandTime = time.Minute

// command is the provider exec: a program of the operator's.
type command struct{ path string }

func (c command) wantsZone() bool { return false }

func (c command) present(ctx context.Context, _, name, value string) error {
	return c.run(ctx, "present", name, value)
}

func (c command) cleanUp(ctx context.Context, _, name, value string) error {
	return c.run(ctx, "cleanup", name, value)
}

func (c command) run(ctx context.Context, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.path, args...)
	cmd.Env = withoutSecrets(os.Environ())
	killTogether(cmd)
	cmd.WaitDelay = time.Second
	out := &head{max: maxDetail}
	cmd.Stdout, cmd.Stderr = out, out
	err := cmd.Run()
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) { // a child process that the command has left running
		return fmt.Errorf("%s %s: %w: %s", c.path, args[0], err, strings.TrimSpace(string(out.text)))
	}
	return nil
}

// withoutSecrets returns an environment without the variables of headgate itself, such as
// HEADGATE_STATE_KEY and HEADGATE_TOKEN: a command needs none of them, and may pass its
// environment on.
func withoutSecrets(environ []string) []string {
	return slices.DeleteFunc(environ, func(v string) bool { return strings.HasPrefix(strings.ToUpper(v), "HEADGATE_") })
}

// head keeps the beginning of what is written to it. It has no other method to write by,
// such as the ReadFrom of a buffer, which io.Copy would use.
type head struct {
	text []byte
	max  int
}

// Write takes everything.
func (h *head) Write(p []byte) (int, error) {
	h.text = append(h.text, p[:min(len(p), h.max-len(h.text))]...)
	return len(p), nil
}
