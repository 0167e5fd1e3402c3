package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"

	"headgate/internal/certs/acme"
	"headgate/internal/cluster"
	"headgate/internal/control"
	"headgate/internal/event"
	"headgate/internal/file"
	"headgate/internal/operator"
	"headgate/internal/pair"
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

// A pair asks its leader for tokens of http-01 that the follower does not know yet.
var _ acme.Challenger = (*pair.Store)(nil)

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

// sharing opens the shared store of a server: a database, or the state directory as one of a
// pair.
type sharing struct {
	serverOptions
	identity *pair.Identity                  // nil unless the machine is one of a pair
	machine  string                          // identifies the state directory; "" without a database
	control  atomic.Pointer[control.Control] // nil until it exists
	pair     *pair.Store                     // nil until it is open, and without one
	engine   *postgres.Store                 // likewise
	database string                          // its name, without secrets
	events   atomic.Pointer[event.Log]       // nil until it exists
	invited  *pair.Invitations               // nil until they are used, and without a database
	warned   sync.Map                        // the warnings about the database that were logged
}

// newSharing finds out what a server shares. The name of a machine of a pair is that of its
// credential.
func newSharing(o *serverOptions) (*sharing, error) {
	if info, err := os.Stat(o.state); err == nil && !info.IsDir() {
		return &sharing{serverOptions: *o}, nil // opening it reports what is wrong
	}
	id, err := pair.LoadIdentity(o.state)
	switch {
	case errors.Is(err, fs.ErrNotExist) && o.follow != "":
		return nil, usage("this machine cannot follow another yet: run \"headgate node join\" with a token of the other machine first")
	case errors.Is(err, fs.ErrNotExist) && o.store == "":
		return &sharing{serverOptions: *o}, nil
	case errors.Is(err, fs.ErrNotExist):
		return &sharing{serverOptions: *o, machine: machineID(o.state)}, nil
	case err != nil:
		return nil, err
	case o.store != "":
		return nil, usage("this machine is one of a pair: it cannot have a database, too; remove the folder node from the state directory to leave the pair")
	}
	o.node = id.Name
	return &sharing{serverOptions: *o, identity: id}, nil
}

// opener returns what opens the store, nil if nothing is shared.
func (s *sharing) opener() func(*local.Store) (store.Store, error) {
	switch {
	case s.identity != nil:
		return s.openPair
	case s.store == "":
		return nil
	}
	return s.open
}

// schema returns the version of the database's tables that this release knows; 0 without one.
func (s *sharing) schema() int {
	if s.identity != nil || s.store == "" {
		return 0
	}
	return postgres.SchemaVersion()
}

// reconsider has the control look at a manual edit again that was rejected before.
func (s *sharing) reconsider() {
	if c := s.control.Load(); c != nil {
		go c.Reconsider()
	}
}

func (s *sharing) openPair(files *local.Store) (store.Store, error) {
	settings, err := pair.LoadSettings(s.state)
	if err != nil {
		return nil, err
	}
	if s.follow != "" {
		settings.Follow = s.follow
	}
	var handed pair.Handed
	s.inherited.Part(partPair, &handed)
	s.pair, err = pair.Open(context.Background(), pair.Options{
		Files: files, Identity: s.identity, Settings: settings, Log: s.log, Hold: s.inherited != nil, Handed: handed,
		Audit:   auditNode,
		Changed: s.changedRole,
		Diverged: func(d pair.Divergence) {
			s.send(event.NodeDiverged{Node: d.Node, Epoch: d.Epoch, Leader: d.Leader, Folder: d.Folder, Changes: bounded(d.Changes)})
		},
	})
	if err != nil {
		return nil, err
	}
	return s.pair, nil
}

// auditNode makes the audit record of what another machine does.
func auditNode(action, object, who, from string) store.Record {
	at, _ := netip.ParseAddrPort(from) // an address is shown if there is one
	return operator.Identity{Name: who, Address: at.Addr(), Via: "node"}.Audit(action, object, "", nil, nil)
}

// invitations returns what lets other machines join the shared database; nil if there is none.
func (s *sharing) invitations(state store.Store) *pair.Invitations {
	if s.engine != nil && s.invited == nil {
		s.invited = pair.NewInvitations(pair.InvitationsOptions{Store: state, Log: s.log, Audit: auditNode, Access: func() (*pair.Access, error) {
			at, err := storeAddress(s.store)
			if err != nil {
				return nil, err
			}
			key, err := storeKey(s.state)
			if err != nil {
				return nil, err
			}
			return pair.AccessTo(at, fmt.Appendf(nil, "%x\n", key))
		}})
	}
	return s.invited
}

// changedRole is called when the machine leads or follows, or has lost the other.
func (s *sharing) changedRole(st pair.State) {
	s.reconsider()
	s.send(event.NodeRole{Node: st.Name, Role: string(st.Role), Leader: st.Leader, Epoch: st.Epoch, Connected: st.Connected})
}

// send publishes an event, once there is a log of them.
func (s *sharing) send(p event.Payload) {
	if l := s.events.Load(); l != nil {
		l.Send(p)
	}
}

func (s *sharing) open(files *local.Store) (store.Store, error) {
	if err := store.CheckName(store.PrefixNode + s.node); err != nil {
		return nil, fmt.Errorf("name of this machine: %w; give another with --node", err)
	}
	engine, name, err := openEngine(s.store, s.state, s.node, s.log, func(state postgres.State) {
		if state != postgres.Away {
			s.reconsider()
		}
	})
	if err != nil {
		return nil, err
	}
	s.engine, s.database = engine, name
	shared, err := cluster.Open(context.Background(), cluster.Options{Copy: files, Engine: engine, Name: name, Log: s.log, Hold: s.inherited != nil, Changed: func(state cluster.State, _ error) {
		if state == cluster.Following {
			s.reconsider()
			go s.warn()
		}
	}})
	if errors.Is(err, local.ErrOwn) {
		err = fmt.Errorf("%w: %s holds users, certificates and revisions that are not in the shared store; move them there with \"headgate store move\", or start with an empty directory", err, s.state)
	}
	if other := (*local.Other)(nil); errors.As(err, &other) {
		err = usage("%w, not of %s. If this database has replaced it, run \"headgate store adopt --store\" with its address, and start headgate again. If the other database is lost and this one is empty, run \"headgate store move --from-copy\" on the machine with the newest state first", err, name)
	}
	if err != nil {
		engine.Close()
		return nil, err
	}
	if _, why := shared.State(); errors.Is(why, postgres.ErrKey) && shared.Position().Revision == 0 {
		shared.Leave() // control closes the state directory
		return nil, fmt.Errorf("%s: %w", name, postgres.ErrKey)
	}
	if err := s.onlyOne(shared); err != nil {
		shared.Leave()
		return nil, err
	}
	return shared, nil
}

// onlyOne returns an error if another machine with the name of this one runs.
func (s *sharing) onlyOne(shared *cluster.Store) error {
	ctx, stop := context.WithTimeout(context.Background(), storeTimeout)
	defer stop()
	now, err := shared.Now(ctx)
	if err != nil || s.machine == "" {
		return nil // the machines find out when the store answers
	}
	e, err := shared.Get(ctx, store.PrefixNode+s.node)
	if err != nil {
		return nil
	}
	n := store.Node{Seen: e.Modified}
	if err := json.Unmarshal(e.Value, &n); err != nil || n.Machine == "" || n.Machine == s.machine || !n.Running(now) {
		return nil
	}
	return usage("another machine named %s uses the shared store: give this one another name with --node. If the other machine does not run any more, wait 90 seconds, or run \"headgate node remove %s\" on a machine that runs", s.node, s.node)
}

// machineFile is the file in a state directory that identifies it.
const machineFile = "machine"

// machineID returns what identifies a state directory, "" if it cannot be kept there.
func machineID(state string) string {
	name := filepath.Join(state, machineFile)
	if data, err := file.Read(name, 256, "an identifier is shorter"); err == nil {
		return strings.TrimSpace(string(data))
	}
	if _, err := os.Stat(state); err != nil {
		return ""
	}
	id := string(store.NewID())
	if err := file.Replace(name, []byte(id+"\n")); err != nil {
		return ""
	}
	return id
}

// explainCopy adds what to do to the error of a start on a copy.
func explainCopy(err error) error {
	copied := (*control.Copied)(nil)
	switch {
	case !errors.As(err, &copied):
		return err
	case strings.HasPrefix(copied.Of, "postgres"):
		return usage("%w: start headgate with --store and the address of the database. If the database is lost, run \"headgate store move --from-copy\" to fill a new one, or \"headgate store leave\" to continue on this machine alone", err)
	}
	return usage("%w: this machine was one of a pair; run \"headgate store leave --without-database\" to continue on this machine alone, or start with an empty directory", err)
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
	engine, err := postgres.Open(postgres.Options{URL: at.String(), Key: key, Node: node, Log: log, Change: changed, Reread: func() ([]byte, error) { return storeKey(state) }})
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
	if text := os.Getenv(storeKeyVariable); text != "" {
		return parseStoreKey(text, storeKeyVariable)
	}
	name := filepath.Join(state, storeKeyFile)
	key, err := readStoreKey(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the key of the shared store is missing: copy %s from a machine that uses it, or set %s; \"headgate store move\" makes the first one", name, storeKeyVariable)
	}
	return key, err
}

// readStoreKey reads the key of a shared store from a file.
func readStoreKey(name string) ([]byte, error) {
	data, err := file.Read(name, 1024, "a key has 65")
	if err != nil {
		return nil, err
	}
	return parseStoreKey(string(data), name)
}

func parseStoreKey(text, from string) ([]byte, error) {
	key, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(key) != 32 {
		return nil, fmt.Errorf("%s: not a key of 64 hexadecimal digits", from)
	}
	return key, nil
}
