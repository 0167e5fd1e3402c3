package docker

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path"
	"strings"
	"syscall"

	"encoding/json"

	"headgate/internal/setting/shown"
)

// answerError is an unusable response of an engine, or of another program at its
// address.
type answerError struct {
	// call is the path of the request, without its version.
	call   string
	status int
	what   string
	err    error
}

// Error returns the error in one line.
func (e *answerError) Error() string { return e.call + ": " + e.what }

// Unwrap returns the error below, if there is one.
func (e *answerError) Unwrap() error { return e.err }

// refused returns the error for an answer that is not 200.
func refused(rs *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(rs.Body, maxText))
	text := strings.TrimSpace(string(body))
	var told struct {
		Message string `json:"message"`
	}
	what := rs.Status
	if json.Unmarshal(body, &told) == nil && told.Message != "" {
		what += ": " + oneLine(told.Message)
	} else if text != "" && !strings.HasPrefix(text, "<") {
		what += ": " + quoted(text)
	}
	call := rs.Request.URL.Path
	if rest, ok := strings.CutPrefix(call, "/v1."); ok {
		_, call, _ = strings.Cut(rest, "/")
		call = "/" + call
	}
	return &answerError{call: call, status: rs.StatusCode, what: what}
}

// variables of the socket proxies that people use, by call.
var variables = map[string]string{"/containers/json": "CONTAINERS=1", "/events": "EVENTS=1", "/_ping": "PING=1"}

// explain returns why an engine could not be queried and what to do about it, for an
// operator.
func (e *engine) explain(err error) (reason, hint string) {
	reason = oneLine(err.Error())
	var answer *answerError
	var netErr net.Error
	switch {
	case errors.As(err, &answer) && answer.status == http.StatusForbidden:
		return reason, fmt.Sprintf("a socket proxy does not let %s through: allow it by %s (headgate needs CONTAINERS=1, EVENTS=1 and PING=1, and nothing else)", answer.call, variables[answer.call])
	case errors.As(err, &answer) && answer.status >= 500:
		return reason, "look into the log of the engine, or of the socket proxy before it"
	case errors.As(err, &answer):
		return reason, "check that endpoint leads to Docker or Podman"
	case errors.Is(err, fs.ErrPermission) && e.socket != "":
		return socketDenied(e.socket), "add the user of headgate to that group (of a container: group_add), or set endpoint to a socket proxy"
	case errors.Is(err, fs.ErrNotExist) && e.socket != "":
		return "there is no socket " + e.socket, "start the engine, set endpoint, or mount the folder " + path.Dir(e.socket) + " into headgate's container"
	case errors.Is(err, syscall.ECONNREFUSED) && e.socket != "":
		return reason, "start the engine; if it runs, headgate's container has the socket of before its start: mount the folder " + path.Dir(e.socket) + " and not the socket itself"
	case errors.Is(err, syscall.ECONNREFUSED):
		return reason, "start what listens at endpoint, or set another endpoint"
	case errors.As(err, new(tls.RecordHeaderError)):
		return reason, "the engine does not speak TLS here: remove tls, or use its other port"
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return reason, "set tls.ca_file to the authority of the engine's certificate, or tls.server_name to the name in it"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &netErr) && netErr.Timeout():
		return "the engine does not answer in time", "check that it works, and that endpoint leads to it"
	}
	return reason, ""
}

// socketDenied returns who owns a socket that may not be opened.
func socketDenied(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Sprintf("permission denied: %s", oneLine(err.Error()))
	}
	return fmt.Sprintf("permission denied: %s %s (mode %04o), and headgate runs as %s", path, owners(info), info.Mode().Perm(), ourselves())
}

// oneLine returns a text of others without control characters, also those that turn text
// about, and not too long.
func oneLine(text string) string { return shown.Line(text, maxText) }

// quoted returns the beginning of a text in quotes.
func quoted(text string) string {
	const longest = 60
	cut := text
	if len(cut) > longest {
		cut = strings.ToValidUTF8(cut[:longest], "") + "…"
	}
	return fmt.Sprintf("%q", cut)
}
