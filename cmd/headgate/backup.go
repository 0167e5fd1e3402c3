package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"headgate/internal/file"
)

// maxPassphrase is how long a passphrase may be, in bytes.
const maxPassphrase = 1024

func newBackup() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Back up the state directory",
		Long: `backup writes an archive of everything in the state directory: users, tokens, certificates
with their private keys, and all revisions of the configuration. The archive is encrypted
with a passphrase, read from --passphrase-file or prompted for at a terminal; an empty
passphrase leaves the archive unencrypted. Protect an unencrypted archive like the state
directory itself. FILE is replaced atomically once the archive is complete; - is standard
output.` + reachHelp + `

If headgate is not running, the state directory is read directly.`,
		Example: "  headgate backup --passphrase-file /root/passphrase /backup/headgate.backup",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("expected the file of the archive, got %d arguments", len(args))
			}
			return nil
		},
	}
	r := addReach(cmd)
	from := cmd.Flags().String("passphrase-file", "", "`FILE` whose only line is the passphrase")
	_ = cmd.MarkFlagFilename("passphrase-file") // the flag exists
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		passphrase, err := readPassphrase(cmd, *from, "leaves it unencrypted")
		if err != nil {
			return err
		}
		out := cmd.OutOrStdout()
		if args[0] != "-" {
			temp, err := os.CreateTemp(filepath.Dir(args[0]), ".headgate-backup-*") // 0600
			if err != nil {
				return fmt.Errorf("write %s: %w", args[0], err)
			}
			defer os.Remove(temp.Name()) // after a successful rename there is nothing to remove
			defer temp.Close()
			out = temp
		}
		if err := r.with(func(ctx context.Context, to *remote) error { return to.Backup(ctx, out, passphrase) }); err != nil {
			return err
		}
		temp, ok := out.(*os.File)
		if !ok || args[0] == "-" {
			return nil
		}
		size, err := temp.Seek(0, io.SeekEnd)
		if err == nil {
			err = keepAs(temp, args[0])
		}
		if err == nil {
			fmt.Fprintln(cmd.ErrOrStderr(), kept(args[0], size, passphrase != ""))
		}
		return err
	}
	return cmd
}

// kept reports what was written, and whether it is encrypted.
func kept(name string, size int64, sealed bool) string {
	if whole, err := filepath.Abs(name); err == nil {
		name = whole
	}
	text := fmt.Sprintf("wrote %s, %d bytes, ", name, size)
	if sealed {
		return text + "encrypted with the passphrase"
	}
	return text + "not encrypted: protect it like the state directory, or encrypt it with --passphrase-file"
}

// keepAs gives a whole file its name.
func keepAs(temp *os.File, name string) error {
	err := temp.Sync()
	if e := temp.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(temp.Name(), name)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// readPassphrase reads a passphrase from a file, or prompts at a terminal; otherwise there
// is none.
func readPassphrase(cmd *cobra.Command, from, empty string) (string, error) {
	if from == "" {
		in, ok := cmd.InOrStdin().(*os.File)
		if !ok || !term.IsTerminal(int(in.Fd())) {
			return "", nil
		}
		fmt.Fprintln(cmd.ErrOrStderr(), "Passphrase of the archive; empty "+empty+".")
		return readPassword(cmd)
	}
	data, err := file.Read(from, maxPassphrase, fmt.Sprintf("the passphrase is longer than %d", maxPassphrase))
	if err != nil {
		return "", err
	}
	line := strings.TrimRight(string(data), "\r\n")
	if line == "" || strings.ContainsAny(line, "\r\n") {
		return "", fmt.Errorf("%s must contain exactly one line, the passphrase", from)
	}
	return line, nil
}
