package main

import (
	"net/http"

	"github.com/spf13/cobra"
)

func newConfirm() *cobra.Command {
	return newDecision(&cobra.Command{
		Use:     "confirm",
		Short:   "Keep the change that waits to be confirmed",
		Long:    `confirm keeps a change that was made with --confirm, or confirm_within in the API.` + reachHelp,
		Example: "  headgate confirm",
	}, "revision %s stays")
}

func newRevert() *cobra.Command {
	return newDecision(&cobra.Command{
		Use:   "revert",
		Short: "Take back the change that waits to be confirmed",
		Long: `revert takes a change back at once that was made with --confirm, or confirm_within in
the API. A change that does not wait any more is taken back by rollback.` + reachHelp,
		Example: "  headgate revert",
	}, "revision %s is taken back")
}

// newDecision completes a command that decides about the change that waits; the API's
// path has its name. said is what it prints, of the revision that waited.
func newDecision(cmd *cobra.Command, said string) *cobra.Command {
	cmd.Args = noArguments
	r, output := addReach(cmd), addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		to, err := r.open(cmd.Context())
		if err != nil {
			return err
		}
		defer to.close()
		var out answered
		if err := to.ask(cmd.Context(), http.MethodPost, "/"+cmd.Name(), struct{}{}, &out); err != nil {
			return err
		}
		return done(cmd, output, out, said, out.Revision)
	}
	return cmd
}
