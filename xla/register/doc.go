// Package register offers lazo to GoMLX's programs as the backend "lazo":
//
//	import _ "github.com/lazo-ml/lazo/xla/register"
//
//	GOMLX_BACKEND=lazo:cpu go run .
//
// The text after the colon is the plugin, as in [xla.Open]; without one it is [xla.CPU]. lazo install installs plugins.
// A program can set compute.DefaultConfig to "lazo:cpu" instead.
package register
