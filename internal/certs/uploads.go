package certs

import (
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"sync"
	"time"

	"headgate/internal/store"
)

// storedName is what stored certificates are called. Those by ACME have the names of
// hosts, with a dot or an underscore, so that neither takes the other's place.
var storedName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// CheckStoredName reports whether a stored certificate may have a name: lower-case
// letters, digits and hyphens, at most 63.
func CheckStoredName(name string) bool { return storedName.MatchString(name) }

// Uploads are the uploaded certificates. It is safe for concurrent use.
type Uploads struct {
	values store.Values

	mu        sync.Mutex
	followers map[string]map[chan struct{}]bool // by name
}

// NewUploads returns uploads over what is kept; nil has nothing on it.
func NewUploads(values store.Values) *Uploads {
	return &Uploads{values: values, followers: map[string]map[chan struct{}]bool{}}
}

// Changed notifies the followers of a certificate that it may have changed.
func (s *Uploads) Changed(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.followers[name] {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// Reload makes all followers check their certificate, for example after changes could have
// been missed.
func (s *Uploads) Reload() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, all := range s.followers {
		for c := range all {
			select {
			case c <- struct{}{}:
			default:
			}
		}
	}
}

// Loader returns the loader of a stored certificate. It may be missing still.
func (s *Uploads) Loader(name string) Loader {
	return &onShelf{uploads: s, name: name, news: make(chan struct{}, 1)}
}

// StoredKey returns the key of the loader of a stored certificate.
func StoredKey(name string) string { return "stored\x00" + name }

// onShelf loads a stored certificate.
type onShelf struct {
	uploads *Uploads
	name    string
	news    chan struct{}

	used   string // what was loaded last, or why nothing was
	failed bool   // nothing was
}

// lookAgain is how often a stored certificate that cannot be used is checked: the store
// could have been unavailable.
const lookAgain = time.Minute

// Key names the certificate.
func (l *onShelf) Key() string { return StoredKey(l.name) }

// Load reads the certificate.
func (l *onShelf) Load() (cert *tls.Certificate, err error) {
	cert, l.used, err = l.read()
	l.failed = err != nil
	return cert, err
}

// read reads the certificate, and returns its identity, too.
func (l *onShelf) read() (cert *tls.Certificate, which string, err error) {
	text, err := l.text()
	if err != nil {
		return nil, err.Error(), err
	}
	pair, err := tls.X509KeyPair(text, text)
	if err != nil {
		err = fmt.Errorf("stored certificate %s: %w", l.name, plain(err))
	} else if now := time.Now(); now.After(pair.Leaf.NotAfter) {
		err = fmt.Errorf("stored certificate %s: expired on %s", l.name, pair.Leaf.NotAfter.Format(time.DateOnly))
	}
	if err != nil {
		return nil, err.Error(), err
	}
	sum := sha256.Sum256(text)
	return &pair, string(sum[:]), nil
}

// text returns what is stored.
func (l *onShelf) text() ([]byte, error) {
	if l.uploads.values == nil {
		return nil, fmt.Errorf("stored certificate %s cannot be read without a state directory", l.name)
	}
	text, err := l.uploads.values.Load(store.PrefixCertificate + l.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("no certificate is stored as %s", l.name)
	case err != nil:
		return nil, fmt.Errorf("read stored certificate %s: %w", l.name, err)
	}
	return text, nil
}

// Follow waits for Changed, and looks at once, as it may have been called between Load and
// now.
func (l *onShelf) Follow(stop <-chan struct{}, changed func()) {
	s := l.uploads
	s.mu.Lock()
	if s.followers[l.name] == nil {
		s.followers[l.name] = map[chan struct{}]bool{}
	}
	s.followers[l.name][l.news] = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if delete(s.followers[l.name], l.news); len(s.followers[l.name]) == 0 {
			delete(s.followers, l.name)
		}
	}()
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for again := true; ; {
		if again {
			if _, which, _ := l.read(); which != l.used {
				l.used = which // also when what calls Load does not
				changed()
			}
		}
		select {
		case <-stop:
			return
		case <-l.news:
			again = true
		case <-tick.C:
			again = l.failed
		}
	}
}
