// Package httpdoc finds proxies in documents that other programs serve over HTTP. Open
// returns the source of one document.
//
// httpdoc.go downloads the document again and again, read.go makes objects of it, and kept.go
// keeps the last one that could be used for the next start.
//
// A document with a mistake is not used at all: the one before stays active. Whether its
// objects conflict with others is decided by the merge, one by one.
package httpdoc

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"headgate/internal/config"
	"headgate/internal/discovery"
	"headgate/internal/file"
	"headgate/internal/server/download"
)

// The limits of a document.
const (
	// maxBytes is the size of the largest document, after decompression.
	maxBytes = 4 << 20
	// maxObjects is how many objects a document has.
	maxObjects = 10_000
	// maxIssues is how many mistakes of a document are reported.
	maxIssues = 20
	// timeout is the maximum time of one download.
	timeout = 30 * time.Second
	// maxPEM is the size of the largest file of authorities.
	maxPEM = 1 << 20
)

// Source is one document. Its methods may be called by several goroutines at once.
type Source struct {
	*discovery.Published
	name     string
	settings *config.HTTPDocument
	log      *slog.Logger
	state    string // directory of what is kept, "" for nothing
	client   *download.Client

	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup

	// used and rejected are the digests of the last documents that were and were not used.
	// They belong to the loop.
	used, rejected [sha256.Size]byte
}

// Open returns the source of an entry of discovery.http, with the objects of the document that
// was used last. It starts nothing. An error is about the file of authorities.
func Open(name string, settings *config.HTTPDocument, env discovery.Environment) (discovery.Source, error) {
	roots := env.Roots
	if settings.CAFile != "" {
		var err error
		if roots, err = readRoots(env.Dir, settings.CAFile); err != nil {
			return nil, err
		}
	}
	s := &Source{
		Published: discovery.NewPublished(), name: name, settings: settings, log: env.Log, state: env.State,
		client: download.NewFor(env.Agent, roots, authorization(settings.Auth), timeout),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.log = s.log.With("provider", name)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.readKept()
	return s, nil
}

// readRoots reads a file of authorities.
func readRoots(dir, name string) (*x509.CertPool, error) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	data, err := file.Read(name, maxPEM, fmt.Sprintf("more than %d bytes", maxPEM))
	if err != nil {
		return nil, fmt.Errorf("ca_file: %v", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("ca_file: %s holds no certificate in PEM form", name)
	}
	return roots, nil
}

// authorization returns the value of the Authorization header (RFC 6750, section 2.1, and
// RFC 7617, section 2), "" for none.
func authorization(a *config.HTTPAuth) string {
	switch {
	case a == nil:
		return ""
	case a.Bearer != "":
		return "Bearer " + a.Bearer
	}
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(a.Username+":"+a.Password))
}

// Start starts the downloads. The first one follows at once.
func (s *Source) Start() {
	s.done.Go(func() {
		s.client.Follow(s.ctx, 0, download.Follower{
			URL: s.settings.URL, Max: maxBytes, Interval: s.settings.Interval.D(), Planned: func(time.Duration) {}, Take: s.receiveDocument,
		})
	})
}

// Stop ends them, and waits for that.
func (s *Source) Stop() {
	s.cancel()
	s.done.Wait()
	s.client.Close()
}

// receiveDocument uses the result of a download. It returns why the document is not used.
func (s *Source) receiveDocument(data []byte, err error) error {
	next := *s.Snapshot()
	next.State, next.Reason, next.Hint = discovery.Running, "", ""
	digest := sha256.Sum256(data)
	switch {
	case errors.Is(err, download.ErrUnchanged):
		next.Issues = nil
	case err != nil:
		next.State, next.Issues = discovery.Failed, nil
		next.Reason, next.Hint = "download: "+err.Error(), "request the URL with curl; the last document stays active until it can be downloaded"
		s.rejected = [sha256.Size]byte{}
	case digest == s.used:
		next.Issues = nil // the server sends no ETag
	case digest == s.rejected && len(next.Issues) > 0:
		err = errMistakes
	default:
		next.Issues, err = s.use(data, digest, &next)
	}
	s.Publish(next)
	return err
}

// errMistakes is returned for a document that is not used.
var errMistakes = errors.New("the document has mistakes")

// use makes a document the one that is used, or returns what is wrong with it.
func (s *Source) use(data []byte, digest [sha256.Size]byte, next *discovery.Snapshot) ([]discovery.Issue, error) {
	objects, issues := s.read(data, digest, next.Objects)
	if len(issues) > 0 {
		s.rejected = digest
		return issues, errMistakes
	}
	next.Objects, next.Known = objects, true
	s.used = digest
	if err := s.keep(data); err != nil {
		s.log.Warn("the document cannot be saved for the next start", "error", err)
	}
	return nil, nil
}

// pinned returns an issue for a document that has another digest than the settings say.
func (s *Source) pinned(digest [sha256.Size]byte) []discovery.Issue {
	want, _ := hex.DecodeString(s.settings.SHA256)
	if len(want) == 0 || bytes.Equal(want, digest[:]) {
		return nil
	}
	return []discovery.Issue{{
		Code: discovery.BadDocument, Message: notUsed + fmt.Sprintf("its digest is %x, and sha256 names %s", digest, strings.ToLower(s.settings.SHA256)),
		Hint: "if the document is right, change sha256 of the provider",
	}}
}

// notUsed begins the message of each issue of a document that is not used.
const notUsed = "the document is not used, the last one stays active: "
