// Package inputs loads the external inputs of a configuration, before it is compiled: files
// in settings, certificates, keys and lists of the state directory. A compile gets them as
// values and reads nothing itself.
//
// A Loader participates in changes: Prepare loads, Commit starts background work (watching
// certificates, OCSP) and writes new keys, Cancel discards. An input that cannot be loaded
// is reported by its user, at its setting; the other inputs are available nevertheless.
package inputs

import (
	"fmt"
	"log/slog"
	"path/filepath"

	"headgate/internal/certs"
	"headgate/internal/config"
	"headgate/internal/exchange"
	"headgate/internal/feature/clientip"
	"headgate/internal/file"
	"headgate/internal/geo"
	"headgate/internal/lists"
	"headgate/internal/store"
	"headgate/internal/upstream"
)

// Options is what a Loader is made of.
type Options struct {
	// Log is the application's log. Nil discards.
	Log *slog.Logger
	// Values is where the self-signed certificate, the key of sticky cookies and the
	// lists of CDNs are kept; nil keeps them in memory.
	Values store.Values
	// Lists and Geo keep the lists of addresses and the geo databases; nil keeps none of
	// them across restarts.
	Lists *lists.Manager
	Geo   *geo.Manager
	// Uploads has the stored certificates; nil uses Values, without notification of
	// changes.
	Uploads *certs.Uploads
}

// Place is where a certificate is: in two files, or stored under a name.
type Place struct{ CertFile, KeyFile, Stored string }

// Loader loads the inputs of one configuration after the other and holds those in
// use. Its methods are not for several goroutines at once.
type Loader struct {
	log          *slog.Logger
	values       store.Values
	uploads      *certs.Uploads
	certificates *certs.Keeper
	lists        *lists.Manager
	geo          *geo.Manager
	current      *Set // of the configuration in use, or empty
}

// NewLoader returns a Loader that holds nothing. Close ends it.
func NewLoader(o Options) *Loader {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Uploads == nil {
		o.Uploads = certs.NewUploads(o.Values)
	}
	if o.Lists == nil {
		o.Lists = lists.New(lists.Options{Log: o.Log})
	}
	if o.Geo == nil {
		o.Geo = geo.New(geo.Options{Log: o.Log})
	}
	return &Loader{lists: o.Lists, geo: o.Geo, log: o.Log, values: o.Values, uploads: o.Uploads, certificates: certs.NewKeeper(o.Log), current: &Set{}}
}

// Close ends what runs for the inputs in use.
func (l *Loader) Close() {
	l.certificates.Close()
	l.lists.Close()
	l.geo.Close()
}

// Set is the inputs of one configuration. It is not changed after Prepare, and may
// be used by several goroutines.
type Set struct {
	loader *Loader
	dir    string
	config *config.Config
	needs  map[*config.Proxy]needs // of the proxies of config that need something
	files  map[string]loaded       // by name as the settings have it
	cdns   map[string]list         // of CDNs, by their names
	// addresses are the lists that settings refer to, and located the geo databases.
	addresses *lists.Set
	located   *geo.Set

	certificates  *certs.Change
	selfSigned    *certs.SelfSigned
	selfSignedErr error
	affinity      *upstream.AffinityKey
}

// loaded is a file, or why there is none.
type loaded struct {
	file *file.Followed
	err  error
}

// list is the networks of a CDN that were kept.
type list struct {
	text []byte
	err  error
}

// Prepare loads what a configuration needs; relative paths in it begin at dir. What
// the configuration in use needs too is not loaded again. Nothing runs and nothing
// is written before Commit.
func (l *Loader) Prepare(cfg *config.Config, dir string) *Set {
	s := &Set{
		loader: l, dir: dir, files: map[string]loaded{}, cdns: map[string]list{},
		selfSigned: l.current.selfSigned, affinity: l.current.affinity,
	}
	n := needsOf(cfg, l.current.config, l.current.needs)
	s.config, s.needs = cfg, n.by
	for _, want := range n.files {
		s.load(want)
	}
	for _, cdn := range n.cdns {
		s.loadList(cdn)
	}
	wanted := make([]certs.Wanted, len(n.pairs))
	for i, p := range n.pairs {
		wanted[i] = certs.Wanted{Name: p.name, Loader: s.loaderOf(p.place)}
	}
	s.certificates = l.certificates.Prepare(wanted)
	s.addresses = l.lists.Prepare(cfg.ListConfigs(), dir)
	s.located = l.geo.Prepare(&cfg.Geo, dir)
	if n.selfSigned && s.selfSigned == nil {
		s.selfSigned, s.selfSignedErr = certs.OpenSelfSigned(l.values)
	}
	if n.affinity && s.affinity == nil {
		s.affinity = upstream.OpenAffinityKey(l.values)
	}
	return s
}

// load loads a file, or takes it from the inputs in use, as it is now.
func (s *Set) load(want file.Wanted) {
	if _, known := s.files[want.Name]; known {
		return
	}
	if before := s.loader.current; before.dir == s.dir {
		if known := before.files[want.Name]; known.file != nil {
			// A file that became unreadable refuses a change, as one that is new does.
			s.files[want.Name] = loaded{known.file, known.file.Refresh()}
			return
		}
	}
	f, err := file.Follow(s.path(want.Name), want.Max, want.TooLarge)
	s.files[want.Name] = loaded{f, err}
}

func (s *Set) loadList(cdn string) {
	if known, ok := s.loader.current.cdns[cdn]; ok {
		s.cdns[cdn] = known
	} else if _, ok := s.cdns[cdn]; !ok {
		text, err := clientip.ReadKept(s.loader.values, cdn)
		s.cdns[cdn] = list{text, err}
	}
}

// path returns where a file of the settings is.
func (s *Set) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(s.dir, name)
}

// File returns a file that the settings name. The error says why there is none.
func (s *Set) File(name string) (*file.Followed, error) {
	if s == nil {
		return nil, notLoaded(name)
	}
	f, known := s.files[name]
	if !known {
		return nil, notLoaded(name)
	}
	return f.file, f.err
}

func notLoaded(name string) error { return fmt.Errorf("read %s: it was not loaded", name) }

// Pair returns the certificate at a place that the settings name, and whether it comes
// into use by this change; nil if there is none. Name is the certificate's own, or
// ForServers of its file.
func (s *Set) Pair(name string, at Place) (pair *certs.Certificate, fresh bool) {
	if s == nil {
		return nil, false
	}
	key := certs.StoredKey(at.Stored)
	if at.Stored == "" {
		key = certs.FilesKey(s.path(at.CertFile), s.path(at.KeyFile))
	}
	return s.certificates.Pair(name, key)
}

// loaderOf returns the loader of a certificate.
func (s *Set) loaderOf(at Place) certs.Loader {
	if at.Stored != "" {
		return s.loader.uploads.Loader(at.Stored)
	}
	return certs.NewFiles(s.path(at.CertFile), s.path(at.KeyFile))
}

// ForServers returns the name of a certificate that is shown to servers.
func ForServers(certFile string) string { return "for servers: " + certFile }

// SelfSigned returns the certificate for names that no other has.
func (s *Set) SelfSigned() (*certs.SelfSigned, error) {
	if s == nil {
		return nil, notLoaded(store.KeySelfSigned)
	}
	return s.selfSigned, s.selfSignedErr
}

// AffinityKey returns the key of sticky cookies, nil if no route has any.
func (s *Set) AffinityKey() *upstream.AffinityKey {
	if s == nil {
		return nil
	}
	return s.affinity
}

// List returns the networks of a CDN that were kept; no bytes if there are none.
func (s *Set) List(cdn string) ([]byte, error) {
	if s == nil {
		return nil, nil
	}
	l := s.cdns[cdn]
	return l.text, l.err
}

// Commit takes the inputs into use. It is called once, unless Cancel is.
func (s *Set) Commit() {
	before := s.loader.current
	s.loader.current = s
	s.certificates.Commit()
	s.addresses.Commit()
	s.located.Commit()
	if s.selfSigned != nil && s.selfSigned != before.selfSigned {
		if err := s.selfSigned.Keep(); err != nil {
			s.loader.log.Error("the self-signed certificate ends with this process", "error", err, "remedy", "make the state directory writable")
		}
	}
	if s.affinity != nil && s.affinity != before.affinity {
		if err := s.affinity.Keep(); err != nil {
			s.loader.log.Error("sticky cookies will not survive a restart", "error", err)
		}
	}
}

// Cancel forgets what was loaded.
func (s *Set) Cancel() {
	s.certificates.Cancel()
	s.addresses.Cancel()
	s.located.Cancel()
}

// Addresses returns the lists and geo databases that settings refer to.
func (s *Set) Addresses() exchange.Addresses {
	if s == nil {
		return exchange.Addresses{}
	}
	return exchange.Addresses{List: s.addresses.Get, Locator: s.located.Locator()}
}
