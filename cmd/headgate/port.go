package main

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"headgate/client"
)

func newPort() *cobra.Command {
	cmd := group("port", "Reset ports", `port acts on a port of the running headgate without changing the configuration. Run
headgate status to see the state of ports.`+reachHelp)
	cmd.AddCommand(newPortReset())
	return cmd
}

func newPortReset() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reset NAME",
		Short: "Close all connections of a port, and retry opening it",
		Long: `reset closes all open connections of a port at once, including those that are draining, and
aborts the requests on them. New connections are accepted as before. A port in the state
waiting is retried at once. The reset is recorded as the event port.reset and in the audit
log.

NAME is the name of a port or, with --kind, of a TCP or UDP proxy.` + reachHelp,
		Example: `  headgate port reset web
  headgate port reset dns --kind udp_proxies --why 'stuck clients'`,
		Args: oneName("port"),
	}
	r, output := addReach(cmd), addOutput(cmd)
	kind := &choice{"ports", []string{"ports", "tcp_proxies", "udp_proxies"}}
	cmd.Flags().Var(kind, "kind", "kind of the object")
	why := cmd.Flags().String("why", "", "`TEXT` recorded in the event and the audit log")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		to, err := r.open(cmd.Context())
		if err != nil {
			return err
		}
		defer to.close()
		in := map[string]string{}
		if *why != "" {
			in["why"] = *why
		}
		var out client.Reset
		if err := to.Do(cmd.Context(), http.MethodPost, "/"+kind.value+"/"+url.PathEscape(args[0])+"/reset", in, &out); err != nil {
			return err
		}
		if output.value == "json" {
			return writeJSON(cmd, out)
		}
		line := fmt.Sprintf("port %s is %s at %s; %d connections closed", out.Port, out.State, out.Address, out.Closed)
		if out.Hint != "" {
			line += "; " + out.Hint
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), printable(line))
		return err
	}
	return cmd
}
