// Package schema reads what the types of the configuration say of themselves:
// names, defaults and bounds from their tags, documentation from their
// comments. It collects the problems of a configuration in a Report, fills
// defaults and checks bounds at run time, and describes the types for editors
// (JSON Schema) and people (the reference page).
//
// The tags of a field are: json (its name; "-" leaves it out), required:"true",
// default:"30s", min:"1" and max:"100" (of a number; of the length of a text,
// list or map), enum:"a,b", later:"c,d" (words that are known and refused until
// they are built), was:"x,y" (names it had before, which are refused and answered
// with the new one), example:"x", expand:"no" (variables are not expanded in it), secret:"true" (its
// value is shown to nobody), and host:"admin" or host:"disk" (it reaches for something
// of the machine, such as a file: through the API admins alone may set it, or nobody). A default on a pointer is what holds when nobody set it; it is not
// filled in.
//
// It does not know any object of the configuration: internal/config and the
// rooms below it do.
package schema
