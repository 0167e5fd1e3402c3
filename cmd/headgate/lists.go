package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"headgate/client"
)

func newLists() *cobra.Command {
	cmd := group("lists", "Check addresses against lists, countries and bans", `lists shows which lists and bans contain an address, and its country and network.`+reachHelp)
	cmd.Example = `  headgate lists check 203.0.113.9`
	cmd.AddCommand(newListsCheck())
	return cmd
}

func newListsCheck() *cobra.Command {
	cmd := &cobra.Command{
		Use: "check ADDRESS", Short: "Show which lists and bans contain an address",
		Long: `check shows which lists and bans contain an address, its country and network if databases
are configured, and why rules cannot ban it, if so.` + reachHelp,
		Example: `  headgate lists check 203.0.113.9
  headgate lists check 2001:db8::9 -o json`,
		Args: oneAddress,
	}
	r, output := addReach(cmd), addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return r.withRemote(func(ctx context.Context, to *remote) error {
			raw, out, err := queryJSON[client.Address](ctx, to, http.MethodGet, "/addresses/"+url.PathEscape(args[0]), nil)
			if err != nil {
				return err
			}
			if output.value == "json" {
				return writeJSON(cmd, raw)
			}
			w := screen{cmd.OutOrStdout()}
			fmt.Fprintf(w, "address:  %s\nlists:    %s\n", out.Address, orNone(strings.Join(out.Lists, ", ")))
			if out.Country != "" {
				fmt.Fprintf(w, "country:  %s\n", out.Country)
			}
			if out.ASN != 0 {
				fmt.Fprintf(w, "network:  AS%d\n", out.ASN)
			}
			if len(out.Bans) == 0 {
				fmt.Fprintln(w, "banned:   no")
			}
			for _, b := range out.Bans {
				fmt.Fprintf(w, "banned:   until %s, rule %s: %s\n", b.Until.Local().Format(time.DateTime), orNone(b.Rule), b.Why)
			}
			if out.Protected != "" {
				fmt.Fprintf(w, "never banned by a rule: it is %s\n", out.Protected)
			}
			return nil
		})
	}
	return cmd
}
