package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"headgate/internal/file"
	"headgate/internal/store/postgres"
)

// The names of the keys of a shared store besides the current one.
const (
	newStoreKeyFile = storeKeyFile + ".new" // while a key is replaced
	oldStoreKeyFile = storeKeyFile + ".old"
)

func newStoreRekey() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rekey",
		Short: "Replace the encryption key of the shared store",
		Long: `rekey encrypts everything in the shared database with a new key, for example after a machine
that had the key was stolen. It replaces store.key in the state directory and keeps the
previous key as store.key.old, which you need to restore older backups of the database.

Running machines continue to serve. They reject changes until you have copied the new
store.key to their state directories; they need no restart. If rekey is interrupted, run it
again. Replace the private keys of certificates, too, if the key was stolen.`,
		Example: "  headgate store rekey --store @/etc/headgate/store",
		Args:    noArguments,
	}
	state := addState(cmd)
	address, _ := addStore(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if os.Getenv(storeKeyVariable) != "" {
			return usage("the key comes from %s: write it to %s in the state directory of this machine, and remove the variable", storeKeyVariable, storeKeyFile)
		}
		dir, err := stateDir(*state)
		if err != nil {
			return err
		}
		back, err := actAsOwner(dir)
		if err != nil {
			return err
		}
		defer back()
		log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn}))
		n, err := rekeyStore(cmd.Context(), dir, *address, log)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "sealed %d entries and records with a new key. Copy %s to the state directories of the other machines.\n", n, filepath.Join(dir, storeKeyFile))
		return err
	}
	return cmd
}

// rekeyStore seals the database with a new key. The key is in a file before the database
// needs it, so that it is not lost if this process ends in between.
func rekeyStore(ctx context.Context, dir, address string, log *slog.Logger) (n int, err error) {
	now, next := filepath.Join(dir, storeKeyFile), filepath.Join(dir, newStoreKeyFile)
	if _, err := os.Lstat(now); err != nil {
		return 0, fmt.Errorf("the key of the shared store: %w", err)
	}
	if _, err := os.Lstat(next); errors.Is(err, fs.ErrNotExist) {
		if err := writeStoreKey(next); err != nil {
			return 0, err
		}
	}
	key, err := readStoreKey(next)
	if err != nil {
		return 0, err
	}
	engine, _, err := openEngine(address, dir, nodeName(""), log, nil)
	if err != nil {
		return 0, err
	}
	defer engine.Close()
	switch n, err = engine.Rekey(ctx, key); {
	case errors.Is(err, postgres.ErrKey):
		// Perhaps an interrupted run has replaced the key in the database.
		if known := engine.TryKey(ctx, key); known != nil {
			return 0, errors.Join(err, known)
		}
	case err != nil:
		return 0, err
	}
	if data, err := os.ReadFile(now); err != nil {
		return n, err
	} else if err := file.Replace(filepath.Join(dir, oldStoreKeyFile), data); err != nil {
		return n, err
	}
	return n, os.Rename(next, now)
}
