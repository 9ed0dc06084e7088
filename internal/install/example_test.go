package install_test

import (
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/lazo-ml/lazo/internal/install"
)

// The table lists what may be installed; Find finds what is, without the network.
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
