package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"headgate/internal/admin/api"
)

// restoreTimeout is how long a restore may take in all.
const restoreTimeout = 15 * time.Minute

func newRestore() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Restore a backup",
		Long: `restore puts the configuration of a backup in force as a change, which is told in words,
and brings its users and tokens back: those of the backup are there afterwards and no
others, and all sessions end. Certificates and ACME accounts that are absent come back;
those that are there stay, as they may be newer. Revisions, audit and events go on: the
restore is one more revision, and a rollback takes its configuration back. With --confirm,
configuration, users and tokens are as before again unless headgate confirm follows. What
does not fit is refused whole. FILE may be - for standard input. On a new machine, start headgate
without a configuration first.` + reachHelp,
		Example: `  headgate restore /backup/headgate.backup --dry-run
  headgate restore --passphrase-file /root/passphrase /backup/headgate.backup`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("want the file of the archive, have %d arguments", len(args))
			}
			return nil
		},
	}
	r, output := addReach(cmd), addOutput(cmd)
	from := cmd.Flags().String("passphrase-file", "", "`FILE` whose one line is the passphrase")
	_ = cmd.MarkFlagFilename("passphrase-file") // the flag exists
	flags := addChange(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		q, err := flags.query()
		if err != nil {
			return err
		}
		in := cmd.InOrStdin()
		if args[0] != "-" {
			f, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer f.Close()
			in = f
		} else if *from == "" {
			cmd.SetIn(http.NoBody) // standard input is the archive, and nobody is asked
		}
		passphrase, err := readPassphrase(cmd, *from, "if it is not sealed")
		if err != nil {
			return err
		}
		to, err := r.open(cmd.Context())
		if err != nil {
			return err
		}
		defer to.close()
		var out answered
		if err := to.restore(cmd.Context(), q, in, passphrase, &out); err != nil {
			return err
		}
		return out.tell(cmd, output)
	}
	return cmd
}

// restore sends an archive.
func (to *remote) restore(ctx context.Context, q string, in io.Reader, passphrase string, out *answered) error {
	ctx, cancel := context.WithTimeout(ctx, restoreTimeout)
	defer cancel()
	fields := map[string]string{"If-Match": "*", "Content-Type": "application/octet-stream"}
	if passphrase != "" {
		fields["Headgate-Passphrase"] = base64.StdEncoding.EncodeToString([]byte(passphrase))
	}
	rs, err := to.send(ctx, http.MethodPost, api.Prefix+"/restore"+q, io.NopCloser(in), fields)
	if err != nil {
		return err
	}
	defer rs.Body.Close()
	if rs.StatusCode != http.StatusOK {
		return refusalOf(rs)
	}
	if err := json.NewDecoder(http.MaxBytesReader(nil, rs.Body, maxAnswer)).Decode(out); err != nil {
		return fmt.Errorf("read the answer of %s: %w", to.place, err)
	}
	return nil
}
