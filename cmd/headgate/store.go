package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"headgate/client"
	"headgate/internal/admin/api"
	"headgate/internal/file"
	"headgate/internal/pair"
	"headgate/internal/store"
	"headgate/internal/store/local"
	"headgate/internal/store/postgres"
)

// storeTimeout limits the requests of a command to a store.
const storeTimeout = 10 * time.Second

func newStore() *cobra.Command {
	cmd := group("store", "Move and check the store that several machines share", `store moves the state of a machine to a PostgreSQL database that several machines share, and
checks that database.`)
	cmd.AddCommand(newStoreMove(), newStoreCheck(), newStoreStatus(), newStoreAdopt(), newStorePush(), newStoreLeave(), newStoreRekey(), newStoreMigrate())
	return cmd
}

func newStoreMove() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "move",
		Short: "Move the state of this machine to a shared store",
		Long: `move copies everything in the state directory to an empty database, with its revisions,
times and sequences: users, tokens, sessions, certificates with their keys, ACME accounts
and orders, the configuration's revisions, the audit log and events. headgate must not be
running.

From the start of the copy, headgate rejects changes to the state directory. If move fails,
run it again; to continue without a shared store, run it with --undo.

If the shared database is lost, the state directory of each machine still has a copy of it,
but without the audit records and events that were added to the database. With --from-copy, move
fills a new, empty database from the copy of this machine: choose the machine with the
highest revision in "headgate store status". On the others, run "headgate store adopt --store".

The database is encrypted with the key in the file store.key of the state directory, which move
creates. Copy this file to the other machines: anyone who has it and can read the database has
all private keys.`,
		Example: "  headgate store move --store 'postgres://headgate@db.example.com/headgate?sslmode=verify-full'",
		Args:    noArguments,
	}
	state := addState(cmd)
	address, _ := addStore(cmd)
	fromCopy := cmd.Flags().Bool("from-copy", false, "fill a new database from the copy of one that is lost")
	undo := cmd.Flags().Bool("undo", false, "accept changes in the state directory again, after a move that failed")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return withState(cmd, *state, func(ctx context.Context, files *local.Store, log *slog.Logger) error {
			if err := movable(ctx, files, *fromCopy); err != nil {
				return err
			}
			if *undo {
				return files.Freeze(ctx, "")
			}
			n, err := moveState(ctx, files, files.Dir(), *address, log)
			if err != nil {
				return err
			}
			at, err := files.Position(ctx)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "moved %d entries and records of revision %d. Start headgate with --store on this machine. On the other machines, use a copy of %s.\n",
				n, at.Revision, filepath.Join(files.Dir(), storeKeyFile))
			return nil
		})
	}
	return cmd
}

// movable returns why the state directory of a machine cannot be moved to a database.
func movable(ctx context.Context, files *local.Store, fromCopy bool) error {
	switch _, err := pair.LoadIdentity(files.Dir()); {
	case err == nil:
		return errors.New("this machine is one of a pair, whose state stays in its machines: on the leader, run \"headgate node revoke\" for the other machine, stop headgate, and remove node and node.yaml from the state directory; then move it")
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	of, err := files.MirrorOf(ctx)
	switch {
	case err != nil:
		return err
	case of != "" && !fromCopy:
		return fmt.Errorf("the state directory is a copy of %s: if that is lost, add --from-copy to fill a new database from the copy", of)
	case of == "" && fromCopy:
		return errors.New("the state directory is not a copy: leave out --from-copy")
	}
	return nil
}

// moveState moves a state directory to the store at an address. It returns how many entries
// and records there were.
func moveState(ctx context.Context, files *local.Store, dir, address string, log *slog.Logger) (n int, err error) {
	if err := makeStoreKey(dir); err != nil {
		return 0, err
	}
	engine, name, err := openEngine(address, dir, nodeName(""), log, nil)
	if err != nil {
		return 0, err
	}
	defer engine.Close()
	if _, err := engine.Now(ctx); err != nil {
		return 0, err
	}
	if err := files.Freeze(ctx, name); err != nil && !errors.Is(err, store.ErrMoved) {
		return 0, err
	}
	items := func(yield func(store.Item, error) bool) {
		for item, err := range files.Export(ctx) {
			if item.Mark == nil && err == nil {
				n++
			}
			if !yield(item, err) {
				return
			}
		}
	}
	if err := engine.Import(ctx, items); err != nil {
		return 0, fmt.Errorf("%w; the state directory refuses changes until the move is repeated or undone", err)
	}
	return n, files.Adopt(ctx, name)
}

// makeStoreKey makes the key of a shared store unless there is one.
func makeStoreKey(dir string) error {
	name := filepath.Join(dir, storeKeyFile)
	if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) || os.Getenv(storeKeyVariable) != "" {
		return nil
	}
	return writeStoreKey(name)
}

// writeStoreKey writes a new key of a shared store to a file.
func writeStoreKey(name string) error {
	key := make([]byte, 32)
	rand.Read(key)
	return file.Replace(name, []byte(hex.EncodeToString(key)+"\n"))
}

func newStoreCheck() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check the shared store and its database",
		Long: `check reports the revision of the shared store, its clock, and settings of the database that can
lose changes. The headgate on this machine uses its connection to the database. With --store,
check connects to the database itself, also while headgate is stopped.` + reachHelp,
		Example: `  headgate store check
  headgate store check --store @/etc/headgate/store`,
		Args: noArguments,
	}
	r := addReach(cmd)
	address, _ := addStore(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *address == "" {
			return r.withRemote(func(ctx context.Context, to *remote) error {
				check, err := to.GetStoreCheck(ctx)
				if err != nil {
					return err
				}
				return printCheck(cmd.OutOrStdout(), check)
			})
		}
		dir, err := stateDir(*r.state)
		if err != nil {
			return err
		}
		engine, name, err := openEngine(*address, dir, nodeName(""), slog.New(slog.DiscardHandler), nil)
		if err != nil {
			return err
		}
		defer engine.Close()
		ctx, stop := context.WithTimeout(cmd.Context(), storeTimeout)
		defer stop()
		found, err := checkEngine(ctx, engine, name)
		if err != nil {
			return err
		}
		check := client.StoreCheck(found)
		return printCheck(cmd.OutOrStdout(), &check)
	}
	return cmd
}

// printCheck prints what a check has found. The error says that the database cannot be used.
func printCheck(out io.Writer, check *client.StoreCheck) error {
	fmt.Fprintf(out, "store     %s\nserver    PostgreSQL %s\nschema    %d\nrevision  %d\nlatency   %gms\nclock     %s ahead of this machine\n", check.Engine, check.Server, check.Schema, check.Revision, check.LatencyMS, check.ClockOffset)
	if !check.Primary {
		return errors.New("the server is a replica and accepts no changes")
	}
	for _, note := range check.Warnings {
		fmt.Fprintf(out, "warning   %s\n", note)
	}
	return nil
}

// checkEngine checks the database of a shared store.
func checkEngine(ctx context.Context, engine *postgres.Store, name string) (api.StoreCheck, error) {
	found, err := engine.Inspect(ctx)
	if err != nil {
		return api.StoreCheck{}, err
	}
	before := time.Now()
	now, err := engine.Now(ctx)
	if err != nil {
		return api.StoreCheck{}, err
	}
	took := time.Since(before)
	_, at, err := engine.Snapshot(ctx, store.KeyHead)
	return api.StoreCheck{
		Engine: name, Server: found.Version, Primary: found.Primary, Schema: found.Schema, Revision: int64(at.Revision), Warnings: found.Notes,
		LatencyMS: float64(took.Round(10*time.Microsecond)) / float64(time.Millisecond), ClockOffset: now.Sub(before.Add(took / 2)).Round(time.Millisecond).String(),
	}, err
}

// checker returns what checks the shared database; nil if there is none.
func (s *sharing) checker() func(context.Context) (api.StoreCheck, error) {
	if s.engine == nil {
		return nil
	}
	return func(ctx context.Context) (api.StoreCheck, error) { return checkEngine(ctx, s.engine, s.database) }
}

// warn checks the database, and logs each warning once.
func (s *sharing) warn() {
	ctx, stop := context.WithTimeout(context.Background(), storeTimeout)
	defer stop()
	check, err := checkEngine(ctx, s.engine, s.database)
	if err != nil {
		return // the connection was lost, and this is called again
	}
	for _, note := range check.Warnings {
		if _, known := s.warned.LoadOrStore(note, true); !known {
			s.log.Warn("the database of the shared store: "+note, "store", s.database)
		}
	}
}
