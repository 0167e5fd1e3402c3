package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
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
		Long: `backup writes one archive of everything in the state directory: users, tokens,
certificates with their keys, and all revisions with their documents. A passphrase
seals it: from --passphrase-file, else asked for at a terminal, where an empty one
leaves the archive unsealed. An unsealed archive is as secret as the directory. FILE is
replaced in one step when the archive is whole; - is standard output.` + reachHelp + `

Where no headgate runs, the state directory is read itself.`,
		Example: "  headgate backup --passphrase-file /root/passphrase /backup/headgate.backup",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("want the file of the archive, have %d arguments", len(args))
			}
			return nil
		},
	}
	r := addReach(cmd)
	from := cmd.Flags().String("passphrase-file", "", "`FILE` whose one line is the passphrase")
	_ = cmd.MarkFlagFilename("passphrase-file") // the flag exists
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		passphrase, err := readPassphrase(cmd, *from, "leaves it unsealed")
		if err != nil {
			return err
		}
		out := cmd.OutOrStdout()
		if args[0] != "-" {
			temp, err := os.CreateTemp(filepath.Dir(args[0]), ".headgate-backup-*") // 0600
			if err != nil {
				return fmt.Errorf("write %s: %w", args[0], err)
			}
			defer os.Remove(temp.Name()) // gone when all went well
			defer temp.Close()
			out = temp
		}
		if err := r.with(func(ctx context.Context, to *remote) error { return to.backup(ctx, out, passphrase) }); err != nil {
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

// kept says what was written, and how secret that is.
func kept(name string, size int64, sealed bool) string {
	if whole, err := filepath.Abs(name); err == nil {
		name = whole
	}
	text := fmt.Sprintf("wrote %s, %d bytes, ", name, size)
	if sealed {
		return text + "sealed with the passphrase"
	}
	return text + "not sealed: keep it as secret as the state directory, or seal it with --passphrase-file"
}

// backup writes an archive.
func (to *remote) backup(ctx context.Context, out io.Writer, passphrase string) error {
	rs, err := to.begin(ctx, http.MethodPost, "/backup", map[string]string{"passphrase": passphrase})
	if err != nil {
		return err
	}
	defer rs.Body.Close()
	if _, err := io.Copy(out, rs.Body); err != nil {
		return fmt.Errorf("the archive did not come whole: %w", err)
	}
	return nil
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

// readPassphrase reads a passphrase from a file, or asks at a terminal; else there is
// none.
func readPassphrase(cmd *cobra.Command, from, empty string) (string, error) {
	if from == "" {
		in, ok := cmd.InOrStdin().(*os.File)
		if !ok || !term.IsTerminal(int(in.Fd())) {
			return "", nil
		}
		fmt.Fprintln(cmd.ErrOrStderr(), "The passphrase of the archive; empty "+empty+".")
		return readPassword(cmd)
	}
	data, err := file.Read(from, maxPassphrase, fmt.Sprintf("a passphrase has at most %d", maxPassphrase))
	if err != nil {
		return "", err
	}
	line := strings.TrimRight(string(data), "\r\n")
	if line == "" || strings.ContainsAny(line, "\r\n") {
		return "", fmt.Errorf("%s does not hold one line, the passphrase", from)
	}
	return line, nil
}
