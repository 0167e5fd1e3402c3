// Package schema reads the description of the configuration from its types: names, defaults
// and bounds from their tags, documentation from their comments. It collects the problems
// of a configuration in a Report, sets defaults and checks bounds at run time, and
// describes the types for editors (JSON Schema) and people (the reference page).
//
// The tags of a field are: json (its name; "-" omits it), required:"true", default:"30s",
// min:"1" and max:"100" (of a number; of the length of a text, list or map), enum:"a,b",
// later:"c,d" (words that are reserved and rejected until they are implemented), was:"x,y"
// (former names, which are rejected with a reference to the new one), example:"x",
// expand:"no" (variables are not expanded), secret:"true" (the value is never shown), and
// host:"admin" or host:"disk" (it accesses something of the machine, such as a file:
// through the API only admins can set it, or no one can), and local:"true" (what another
// machine sets has an effect only where a file of the machine allows it). A default on a
// pointer applies if the field is set nowhere; it is not filled in.
//
// The package does not know any object of the configuration: internal/config and the
// packages below it do.
package schema
