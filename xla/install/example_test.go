package install_test

import (
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/lazo-ml/lazo/xla/install"
)

// The table says what may be installed; Find looks for what is, and reads no network.
func ExampleFind() {
	fmt.Println(install.Kinds())
	root, err := os.MkdirTemp("", "example-*") // "" is the folder of lazo install
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(root)
	_, err = install.Find("cpu", root)
	fmt.Println(errors.Is(err, install.ErrNotInstalled))
	// Output:
	// [cpu cpu106 cpu81 cuda cuda12 cuda_compile tpu]
	// true
}
