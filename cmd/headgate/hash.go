package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"headgate/internal/setting/password"
)

func newHashPassword() *cobra.Command {
	algorithm := newChoice("argon2id", "bcrypt")
	cmd := &cobra.Command{
		Use:   "hash-password",
		Short: "Hash a password for basic_auth",
		Long: `hash-password reads a password and prints its hash, for the password_hash of a basic_auth
user. At a terminal it prompts twice without echo; otherwise it reads one line from
standard input. It does not accept a password on the command line, where other users could
see it.`,
		Example: `  headgate hash-password
  headgate hash-password --algorithm bcrypt < password.txt`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := readPassword(cmd)
			if err != nil {
				return err
			}
			hash := password.Argon2id
			if algorithm.value == "bcrypt" {
				hash = password.Bcrypt
			}
			out, err := hash(text)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), out)
			return err
		},
	}
	cmd.Flags().Var(algorithm, "algorithm", "hash algorithm")
	return cmd
}

// readPassword reads a password without showing it, or from what is no terminal.
func readPassword(cmd *cobra.Command) (string, error) {
	in, ok := cmd.InOrStdin().(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return passwordLine(cmd.InOrStdin())
	}
	first, err := prompt(cmd, in, "Password: ")
	if err != nil {
		return "", err
	}
	again, err := prompt(cmd, in, "Repeat the password: ")
	if err != nil {
		return "", err
	}
	if first != again {
		return "", errors.New("the passwords do not match")
	}
	return first, nil
}

func prompt(cmd *cobra.Command, in *os.File, text string) (string, error) {
	fmt.Fprint(cmd.ErrOrStderr(), text)
	b, err := term.ReadPassword(int(in.Fd()))
	fmt.Fprintln(cmd.ErrOrStderr())
	if err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}
	return string(b), nil
}

// passwordLine reads the one line of an input that is no terminal.
func passwordLine(in io.Reader) (string, error) {
	b, err := io.ReadAll(io.LimitReader(in, password.Longest+3))
	if err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}
	line := strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
	if strings.Contains(line, "\n") {
		return "", errors.New("standard input must contain exactly one line, the password")
	}
	return line, nil
}
