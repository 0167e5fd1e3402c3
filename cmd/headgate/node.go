package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"headgate/client"
	"headgate/internal/store"
)

func newNode() *cobra.Command {
	cmd := group("node", "Manage the machines that share their state", `node shows the machines that share a store, and takes them out of service. On a machine
without a shared store, drain and undrain act on that machine.

`+pairHelp+reachHelp)
	cmd.AddCommand(newNodeList(), newNodeDrain(), newNodeUndrain(), newNodeRemove(), newNodeInit(), newNodeInvite(), newNodeJoin(), newNodeRevoke())
	return cmd
}

// nodeRow returns the cells of a machine in the table.
func nodeRow(n *client.Node) []string {
	state := n.State
	if n.Reason != "" {
		state += " (" + n.Reason + ")"
	}
	revision := fmt.Sprint(n.Revision)
	if n.Revision < n.LatestRevision {
		revision += fmt.Sprintf(" (newest %d)", n.LatestRevision)
	}
	return []string{n.Name, state, n.Version, revision, ago(n.Seen), n.ClockOffset, orNone(strings.Join(n.Problems, "; "))}
}

func newNodeList() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the machines that share a store",
		Long: `list prints each machine with its state, its version, the revision of the configuration that
it serves, when it was seen last, the offset of its clock, and its problems.

With --store it reads the database directly, when no headgate runs on this machine.` + reachHelp,
		Example: `  headgate node list
  headgate node list --store @/etc/headgate/store`,
		Args: noArguments,
	}
	withList(cmd, "/nodes", []string{"NODE", "STATE", "VERSION", "REVISION", "SEEN", "CLOCK", "PROBLEMS"}, nodeRow)
	running := cmd.RunE
	address, _ := addStore(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *address == "" {
			return running(cmd, args)
		}
		return listStoredNodes(cmd, *address)
	}
	return cmd
}

// listStoredNodes prints the machines that a database knows.
func listStoredNodes(cmd *cobra.Command, address string) error {
	dir, err := stateDir(cmd.Flag("state").Value.String())
	if err != nil {
		return err
	}
	engine, _, err := openEngine(address, dir, nodeName(""), slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return err
	}
	defer engine.Close()
	ctx, stop := context.WithTimeout(cmd.Context(), storeTimeout)
	defer stop()
	nodes, err := store.Nodes(ctx, engine)
	if err != nil {
		return err
	}
	now, err := engine.Now(ctx)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		fmt.Fprintf(cmd.OutOrStdout(), "%-24s version %-12s revision %-6d seen %v ago\n", n.Name, n.Version, n.Applied, now.Sub(n.Seen).Round(time.Second))
	}
	return nil
}

func newNodeDrain() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "drain NODE",
		Short: "Take a machine out of service",
		Long: `drain makes the readiness check of a machine fail, so that load balancers and keepalived send
its clients to other machines. /readyz answers 503, and open HTTP connections end with their
next response. The ports stay open: requests that still arrive are served, and connections of
TCP proxies go on. The drain lasts until undrain, including across restarts.` + reachHelp,
		Example: `  headgate node drain web2 --why 'new kernel'
  headgate node undrain web2`,
		Args: oneName("node"),
	}
	return withNodeVerb(cmd, "drain", "%s is drained")
}

func newNodeUndrain() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "undrain NODE",
		Short:   "Return a machine to service",
		Long:    `undrain ends the drain of a machine.` + reachHelp,
		Example: "  headgate node undrain web2",
		Args:    oneName("node"),
	}
	return withNodeVerb(cmd, "undrain", "%s is returned to service")
}

// withNodeVerb completes a command that changes the state of a machine.
func withNodeVerb(cmd *cobra.Command, verb, message string) *cobra.Command {
	r, output := addReach(cmd), addOutput(cmd)
	why := cmd.Flags().String("why", "", "`TEXT` recorded in the audit log")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return r.withRemote(func(ctx context.Context, to *remote) error {
			in := map[string]string{}
			if *why != "" {
				in["why"] = *why
			}
			var n client.Node
			if err := to.Do(ctx, http.MethodPost, "/nodes/"+url.PathEscape(args[0])+"/"+verb, in, &n); err != nil {
				return err
			}
			return done(cmd, output, n, message, n.Name)
		})
	}
	return cmd
}

func newNodeRemove() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "remove NODE",
		Short: "Remove a machine that is gone",
		Long: `remove deletes the entry of a machine that no longer runs, so that other machines do not wait for it.
Certificates that only this machine required may be deleted when they have expired. A machine
that runs cannot be removed: stop it first.` + reachHelp,
		Example: "  headgate node remove web3",
		Args:    oneName("node"),
	}
	return withDelete(cmd, "/nodes/", "node", "%s is removed")
}
