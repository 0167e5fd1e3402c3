package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"headgate/internal/config"
	"headgate/internal/config/disk"
	"headgate/internal/file"
)

// configName is the default name of a configuration file.
const configName = "headgate.yaml"

// addConfig adds the flag --config to a command.
func addConfig(cmd *cobra.Command) *string {
	c := new(string)
	cmd.Flags().VarP(&once{name: "--config", value: c}, "config", "c", "configuration `FILE` or directory; by default the first of "+strings.Join(displayed(), ", ")+", DIR/"+configName+" of --state")
	_ = cmd.MarkFlagFilename("config", "yaml", "yml", "json") // the flag exists
	return c
}

// once is the value of a flag that is a text and may be given once.
type once struct {
	name  string
	value *string
	set   bool
}

func (o *once) String() string {
	if o.value == nil {
		return ""
	}
	return *o.value
}

func (o *once) Type() string { return "string" }

// Set takes the value, and refuses a second one: the last would win otherwise, and
// the first would silently mean nothing.
func (o *once) Set(s string) error {
	if o.set {
		return fmt.Errorf("%s was already given as %q; specify one file, or a directory of *.yaml files", o.name, *o.value)
	}
	*o.value, o.set = s, true
	return nil
}

// displayed returns the search path for the help, which is the same on every machine of a
// system.
func displayed() []string {
	if runtime.GOOS == "windows" {
		return []string{`%ProgramData%\headgate\` + configName, `%AppData%\headgate\` + configName, configName}
	}
	return []string{"/etc/headgate/" + configName, "$XDG_CONFIG_HOME/headgate/" + configName, "./" + configName}
}

// searchPath returns the files that are tried if none is specified.
func searchPath() []string {
	var paths []string
	if runtime.GOOS == "windows" {
		if dir := os.Getenv("ProgramData"); dir != "" {
			paths = append(paths, filepath.Join(dir, "headgate", configName))
		}
	} else {
		paths = append(paths, filepath.Join("/etc/headgate", configName))
	}
	dir := os.Getenv("XDG_CONFIG_HOME")
	if dir == "" {
		dir, _ = os.UserConfigDir() // without a home directory there is none
	}
	if dir != "" {
		paths = append(paths, filepath.Join(dir, "headgate", configName))
	}
	return append(paths, configName)
}

// configPath returns the configuration file of a command: the specified one, else the first
// existing one on the search path, else the one in the state directory, which headgate
// creates at its first start without a configuration.
func configPath(named, state string) (string, error) {
	if named != "" {
		return named, nil
	}
	paths := searchPath()
	if dir, err := stateDir(cmp.Or(state, os.Getenv(variable("state")))); err == nil {
		paths = append(paths, filepath.Join(dir, configName))
	}
	for _, p := range paths {
		if _, err := os.Stat(p); !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return p, nil
		}
	}
	return "", usage("no configuration file found at %s; specify one with --config, or try headgate demo", strings.Join(paths, ", "))
}

// emptyConfig is the configuration file that is created at the first start without a
// configuration.
const emptyConfig = `# Configuration of headgate. You, the console and the API can change this file; changes
# apply when it is saved. docs/reference/configuration.md describes every field.
version: 1
`

// configToRun is configPath for run: without any file it makes one in the state
// directory. Address is where its admin listener is to be, "" for where it is by default.
func configToRun(named, state, address string) (name string, made bool, err error) {
	if name, err = configPath(named, state); err == nil {
		return name, false, nil
	}
	text := emptyConfig
	if address != "" {
		text += fmt.Sprintf("admin:\n  address: %q\n", address)
	}
	name = filepath.Join(state, configName)
	if err = os.MkdirAll(state, 0o700); err == nil {
		err = file.Replace(name, []byte(text))
	}
	if errors.Is(err, fs.ErrPermission) && os.Geteuid() > 0 {
		return "", false, fmt.Errorf("the state directory %s is not writable for user %d: run `chown %[2]d` on it, or run headgate as its owner (in Compose: `user:`)", state, os.Geteuid())
	}
	if err != nil {
		return "", false, fmt.Errorf("no configuration file was found, and none can be created in the state directory: %w; specify a file with --config, or another directory with --state", err)
	}
	return name, true, nil
}

// readDocuments reads the configuration that a command works on: a file, a folder, or
// standard input.
func readDocuments(cmd *cobra.Command, named string) (name string, d config.Documents, err error) {
	if name, err = configPath(named, ""); err != nil {
		return "", d, err
	}
	if info, failed := os.Stat(name); failed == nil && info.IsDir() {
		d, err = disk.Documents(name)
		return name, d, err
	}
	name, data, err := readConfig(cmd, named)
	return name, config.Documents{Dir: filepath.Dir(name), List: []config.Document{{Name: name, Data: data}}}, err
}

// readConfig reads the file that a command works on, or standard input when it
// is called "-". It reads no more than a configuration may have.
func readConfig(cmd *cobra.Command, named string) (name string, data []byte, err error) {
	if name, err = configPath(named, ""); err != nil {
		return "", nil, err
	}
	in := cmd.InOrStdin()
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return name, nil, err
		}
		defer file.Close()
		in = file
	}
	data, err = io.ReadAll(io.LimitReader(in, int64(config.MaxFileSize)+1))
	if err != nil {
		return name, nil, fmt.Errorf("read configuration: %w", err)
	}
	return name, data, nil
}

// systemState is where a service keeps its state.
const systemState = "/var/lib/headgate"

// stateDir returns the folder that state is kept in: the named one, systemd's,
// the system's if it can be written to, else the user's.
func stateDir(named string) (string, error) {
	if named != "" {
		return filepath.Abs(named)
	}
	if dirs := os.Getenv("STATE_DIRECTORY"); dirs != "" {
		dir, _, _ := strings.Cut(dirs, ":")
		return dir, nil
	}
	if runtime.GOOS != "windows" && (os.Geteuid() == 0 || writable(systemState)) {
		return systemState, nil
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "headgate"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", usage("no state directory: %w; specify one with --state", err)
	}
	return filepath.Join(home, ".local", "state", "headgate"), nil
}

// writable reports whether a file can be made in a folder.
func writable(dir string) bool {
	f, err := os.CreateTemp(dir, ".writable-*")
	if err != nil {
		return false
	}
	f.Close()
	return os.Remove(f.Name()) == nil
}
