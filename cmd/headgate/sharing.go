package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"headgate/internal/cluster"
	"headgate/internal/control"
	"headgate/internal/file"
	"headgate/internal/store"
	"headgate/internal/store/local"
	"headgate/internal/store/postgres"
)

// storeKeyVariable holds the key that a shared store is sealed with; storeKeyFile is the
// file in the state directory that has it otherwise.
const (
	storeKeyVariable = "HEADGATE_STORE_KEY"
	storeKeyFile     = "store.key"
)

// addStore adds the flags of a shared store.
func addStore(cmd *cobra.Command) (address, node *string) {
	address = cmd.Flags().String("store", "", "`URL` of the PostgreSQL database that several machines share, or @FILE with the URL in it")
	node = cmd.Flags().String("node", "", "`NAME` of this machine among those that share the store; by default its host name")
	return address, node
}

// nodeName returns the name of this machine.
func nodeName(given string) string {
	if given == "" {
		given, _ = os.Hostname() // checked where it is used
	}
	return strings.ToLower(given)
}

// sharing opens the shared store of a server.
type sharing struct {
	serverOptions
	control atomic.Pointer[control.Control] // nil until it exists
}

// opener returns what opens the store, nil if nothing is shared.
func (s *sharing) opener() func(*local.Store) (store.Store, error) {
	if s.store == "" {
		return nil
	}
	return s.open
}

func (s *sharing) open(files *local.Store) (store.Store, error) {
	if err := store.CheckName(store.PrefixNode + s.node); err != nil {
		return nil, fmt.Errorf("name of this machine: %w; give another with --node", err)
	}
	reconsider := func() {
		if c := s.control.Load(); c != nil {
			go c.Reconsider() // a manual edit that was rejected before
		}
	}
	engine, name, err := openEngine(s.store, s.state, s.node, s.log, func(state postgres.State) {
		if state != postgres.Away {
			reconsider()
		}
	})
	if err != nil {
		return nil, err
	}
	shared, err := cluster.Open(context.Background(), cluster.Options{Copy: files, Engine: engine, Name: name, Log: s.log, Changed: func(state cluster.State, _ error) {
		if state == cluster.Following {
			reconsider()
		}
	}})
	if errors.Is(err, local.ErrOwn) {
		err = fmt.Errorf("%w: %s holds users, certificates and revisions that are not in the shared store; move them there with \"headgate store move\", or start with an empty directory", err, s.state)
	}
	if err != nil {
		engine.Close()
		return nil, err
	}
	return shared, nil
}

// openEngine opens the shared store at an address. Its name identifies the address, and
// contains no secret.
func openEngine(address, state, node string, log *slog.Logger, changed func(postgres.State)) (*postgres.Store, string, error) {
	at, err := storeAddress(address)
	if err != nil {
		return nil, "", err
	}
	key, err := storeKey(state)
	if err != nil {
		return nil, "", err
	}
	engine, err := postgres.Open(postgres.Options{URL: at.String(), Key: key, Node: node, Log: log, Change: changed})
	return engine, at.Scheme + "://" + at.Host + at.Path, err
}

// storeAddress reads the address of a store, from a file if it begins with @.
func storeAddress(text string) (*url.URL, error) {
	if name, ok := strings.CutPrefix(text, "@"); ok {
		data, err := file.Read(name, 4096, "an address is shorter")
		if err != nil {
			return nil, fmt.Errorf("read the address of the store: %w", err)
		}
		text = strings.TrimSpace(string(data))
	}
	at, err := url.Parse(text)
	if err != nil || at.Scheme != "postgres" && at.Scheme != "postgresql" {
		return nil, usage("invalid address of the store: expected postgres://USER@HOST/DATABASE")
	}
	return at, nil
}

// storeKey returns the key that the shared store is sealed with.
func storeKey(state string) ([]byte, error) {
	text, from := os.Getenv(storeKeyVariable), storeKeyVariable
	if text == "" {
		from = filepath.Join(state, storeKeyFile)
		data, err := file.Read(from, 1024, "a key has 65")
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("the key of the shared store is missing: copy %s from a machine that uses it, or set %s; \"headgate store move\" makes the first one", from, storeKeyVariable)
		}
		if err != nil {
			return nil, err
		}
		text = string(data)
	}
	key, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(key) != 32 {
		return nil, fmt.Errorf("%s: not a key of 64 hexadecimal digits", from)
	}
	return key, nil
}
