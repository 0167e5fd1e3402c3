// Package docker finds proxies in the labels of containers. Open gives the source of one
// engine, Docker's or Podman's.
//
// engine.go queries the engine, with three calls and nothing else; values.go and
// container.go read the responses within limits; fault.go explains errors. labels.go
// parses the labels of a container, world.go makes objects of containers over time,
// address.go finds the address of a container, and here.go that of headgate itself.
// follow.go is the loop over all of it. compose.go previews a Compose file.
//
// It decides about containers and their addresses. What the labels say of an object is
// decoded, bounded and merged with the rest of the configuration above.
package docker

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"sync"

	"headgate/internal/config"
	"headgate/internal/discovery"
)

// Source is one engine. Its methods may be called by several goroutines at once.
type Source struct {
	*discovery.Published
	engine *engine
	world  *world
	log    *slog.Logger
	// peer is the address of the engine's machine for Elsewhere, else invalid.
	peer netip.Addr

	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// Open returns the source of an entry of discovery.docker. It starts nothing. An error
// is about a file of its TLS settings, or about its endpoint.
func Open(name string, settings *config.Docker, env discovery.Environment) (discovery.Source, error) {
	return open(name, settings, env, detectHost())
}

// Elsewhere is the address that servers have of a source that OpenElsewhere returns.
func Elsewhere() netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, 1}) }

// OpenElsewhere is Open for the engine of this machine as other machines see it: servers are
// published ports, at the address Elsewhere.
func OpenElsewhere(name string, settings *config.Docker, env discovery.Environment) (discovery.Source, error) {
	s, err := open(name, settings, env, here{})
	if err != nil {
		return nil, err
	}
	s.peer = Elsewhere()
	return s, nil
}

func open(name string, settings *config.Docker, env discovery.Environment, h here) (*Source, error) {
	secure, err := tlsConfig(settings, env.Dir)
	if err != nil {
		return nil, err
	}
	e, err := newEngine(settings.Endpoint, secure)
	if err != nil {
		return nil, err
	}
	s := &Source{Published: discovery.NewPublished(), engine: e, world: newWorld(name, settings, h), log: env.Log}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// Start starts to follow the engine.
func (s *Source) Start() { s.done.Go(s.follow) }

// Stop ends it, and waits for that.
func (s *Source) Stop() {
	s.cancel()
	s.done.Wait()
}

// maxPEM is the size of the largest file of certificates or keys.
const maxPEM = 1 << 20

// tlsConfig reads how TLS is spoken to the engine; nil for plain connections.
func tlsConfig(settings *config.Docker, dir string) (*tls.Config, error) {
	t := settings.TLS
	if t == nil {
		return nil, nil
	}
	out := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CAFile != "" {
		data, err := readPEM(dir, t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("tls.ca_file: %v", err)
		}
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("tls.ca_file: %s holds no certificate in PEM form", t.CAFile)
		}
	}
	if t.CertFile != "" {
		cert, err := readPEM(dir, t.CertFile)
		if err != nil {
			return nil, fmt.Errorf("tls.cert_file: %v", err)
		}
		key, err := readPEM(dir, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("tls.key_file: %v", err)
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("tls.cert_file: %v", err)
		}
		out.Certificates = []tls.Certificate{pair}
	}
	return out, nil
}

// readPEM reads a small file.
func readPEM(dir, path string) ([]byte, error) {
	if !filepath.IsAbs(path) && dir != "" {
		path = filepath.Join(dir, path)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxPEM {
		return nil, fmt.Errorf("%s is not a regular file of at most %d bytes", path, maxPEM)
	}
	return os.ReadFile(path)
}
