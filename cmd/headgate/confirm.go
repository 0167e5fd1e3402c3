package main

import (
	"net/http"

	"github.com/spf13/cobra"

	"headgate/client"
)

func newConfirm() *cobra.Command {
	return newDecision(&cobra.Command{
		Use:     "confirm",
		Short:   "Confirm the pending change",
		Long:    `confirm keeps a change made with --confirm, or with confirm_within in the API.` + reachHelp,
		Example: "  headgate confirm",
	}, "revision %s confirmed")
}

func newRevert() *cobra.Command {
	return newDecision(&cobra.Command{
		Use:   "revert",
		Short: "Revert the pending change",
		Long: `revert reverts a change made with --confirm, or with confirm_within in the API, without
waiting for its time limit. To undo a confirmed change, use headgate rollback.` + reachHelp,
		Example: "  headgate revert",
	}, "revision %s reverted")
}

// newDecision completes a command that confirms or reverts the pending change; the
// command's name is the API's path. message is the printed message, with the revision.
func newDecision(cmd *cobra.Command, message string) *cobra.Command {
	cmd.Args = noArguments
	r, output := addReach(cmd), addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		to, err := r.open(cmd.Context())
		if err != nil {
			return err
		}
		defer to.close()
		var out client.Confirm
		if err := to.Do(cmd.Context(), http.MethodPost, "/"+cmd.Name(), struct{}{}, &out); err != nil {
			return err
		}
		return done(cmd, output, out, message, out.Revision)
	}
	return cmd
}
