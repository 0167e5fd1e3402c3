package api

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"headgate/internal/config"
	"headgate/internal/store"
)

const (
	// archiveMedia is the type of an archive.
	archiveMedia = "application/octet-stream"
	// passphraseField carries the passphrase of an archive: its body is the archive.
	passphraseField = "Headgate-Passphrase"
	// maxArchive is how large an archive may be.
	maxArchive = 2 << 30
	// maxPassphrase is how many bytes a passphrase has.
	maxPassphrase = 1024
)

// restore applies an archive. The configuration files are applied as a change like any
// other, with a plan; users and tokens are replaced after it.
func (a *API) restore(c *call) (any, error) {
	if a.Control == nil {
		return nil, refuse("unavailable", "", "only a running headgate restores archives", "start headgate, which needs no configuration for it, and try again")
	}
	if c.rq.ContentLength > maxArchive {
		return nil, tooLarge(maxArchive)
	}
	e := &edit{call: c, action: "config.restore", why: "restore of a backup"}
	if c.ifMatch != "*" { // before an archive is read for nothing
		docs, tag, err := a.Control.Documents()
		if err != nil {
			return nil, refuse("unavailable", "", err.Error(), "")
		}
		if now, err := a.running(); err == nil && tag != c.ifMatch {
			return nil, a.staleProblem(e, docs, now)
		}
	}
	passphrase, err := base64.StdEncoding.DecodeString(c.rq.Header.Get(passphraseField))
	if err != nil || len(passphrase) > maxPassphrase {
		return nil, refuseParameter("invalid", passphraseField, "the passphrase is not in base64, or is too long", "")
	}
	ctx, cancel := context.WithTimeout(c.rq.Context(), backupTimeout)
	defer cancel()
	body := &archiveReader{from: http.MaxBytesReader(c.w, c.rq.Body, maxArchive), by: http.NewResponseController(c.w)}
	archive, err := a.Control.OpenArchive(ctx, body, string(passphrase))
	switch {
	case errors.As(body.failed, new(*http.MaxBytesError)):
		return nil, tooLarge(maxArchive)
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrClosed), errors.Is(err, context.Canceled):
		return nil, err
	case err != nil:
		return nil, refuse("invalid", "", err.Error(), "")
	}
	defer archive.Close()
	e.make = func(docs config.Documents, _ *config.Config) (config.Documents, error) {
		out, err := archive.Documents(docs)
		if err != nil {
			return docs, refuse("not_applied", "", err.Error(), "")
		}
		return out, nil
	}
	if err := archive.RestoreCertificates(ctx); err != nil {
		return nil, err
	}
	out, err := e.apply()
	if err != nil || c.dryRun {
		if failed := archive.Undo(context.WithoutCancel(ctx)); failed != nil {
			a.Log.Error("certificates of an archive that was not restored stay", "error", failed)
		}
		return out, err
	}
	waits := ""
	if b := out.(changeBody); !b.Until.IsZero() {
		waits = b.Revision
	}
	if err := archive.Finish(context.WithoutCancel(ctx), waits); err != nil {
		a.Log.Error("users and tokens of an archive are not restored", "error", err)
		return nil, refuse(unlessKept(err), "", fmt.Sprintf("the configuration is restored, users and tokens are not: %v", err), "restore once more")
	}
	return out, nil
}

// unlessKept is the code of what could not be kept.
func unlessKept(err error) string {
	if errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrClosed) {
		return "unavailable"
	}
	return "internal"
}

// archiveReader reads the body of a request and gives each part of it some time.
type archiveReader struct {
	from   io.Reader
	by     *http.ResponseController
	failed error
}

// Read reads a part of the archive.
func (a *archiveReader) Read(p []byte) (int, error) {
	if err := a.by.SetReadDeadline(time.Now().Add(writeTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	n, err := a.from.Read(p)
	if err != nil && err != io.EOF {
		a.failed = err
	}
	return n, err
}
