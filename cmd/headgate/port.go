package main

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"
)

func newPort() *cobra.Command {
	cmd := group("port", "Reset ports", `port does something to a port at run time. No document is touched. "headgate status" tells
how ports stand.`+reachHelp)
	cmd.AddCommand(newPortReset())
	return cmd
}

func newPortReset() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reset NAME",
		Short: "Close all connections of a port, and retry one that waits",
		Long: `reset closes all open connections of a port at once, those of a socket that drains too,
and requests on them break off. New clients are served as before. A port that waits for its
address is tried again at once. The event port.reset and the audit tell who did it.

NAME is the name of a port, or with --kind that of a TCP or UDP proxy.` + reachHelp,
		Example: `  headgate port reset web
  headgate port reset dns --kind udp_proxies --why 'stuck clients'`,
		Args: oneName("port"),
	}
	r, output := addReach(cmd), addOutput(cmd)
	kind := &choice{"ports", []string{"ports", "tcp_proxies", "udp_proxies"}}
	cmd.Flags().Var(kind, "kind", "kind of the object")
	why := cmd.Flags().String("why", "", "`TEXT` that the event and the audit tell")
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
		var out struct {
			Port    string `json:"port"`
			Closed  int    `json:"closed"`
			State   string `json:"state"`
			Address string `json:"address"`
			Reason  string `json:"reason,omitempty"`
			Hint    string `json:"hint,omitempty"`
		}
		if err := to.ask(cmd.Context(), http.MethodPost, "/"+kind.value+"/"+url.PathEscape(args[0])+"/reset", in, &out); err != nil {
			return err
		}
		if output.value == "json" {
			return writeJSON(cmd, out)
		}
		line := fmt.Sprintf("port %s is %s at %s; connections closed: %d", out.Port, out.State, out.Address, out.Closed)
		if out.Hint != "" {
			line += "; " + out.Hint
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), printable(line))
		return err
	}
	return cmd
}
