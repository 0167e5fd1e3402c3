package main

import (
	"errors"
	"strings"
	"testing"
)

// TestHelpNamesNoSocketWhereThereIsNone reads what a command says on systems that do not
// tell who is at the other end of a socket.
func TestHelpNamesNoSocketWhereThereIsNone(t *testing.T) {
	if text := signInHelp(true); !strings.Contains(text, "or use the admin socket") {
		t.Errorf("with sockets: %s", text)
	}
	if text := signInHelp(false); !strings.Contains(text, tokenVariable) || !strings.Contains(text, "headgate token create") || strings.Contains(text, "use the admin socket") {
		t.Errorf("without sockets: %s", text)
	}
	if err := noSocket(); !errors.Is(err, errNotRunning) || !strings.Contains(err.Error(), "--admin") || !strings.Contains(err.Error(), tokenVariable) {
		t.Errorf("a state directory without a socket: %v", err)
	}
}
