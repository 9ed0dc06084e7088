package launch_test

import (
	"context"
	"log"
	"os"

	"github.com/lazo-ml/lazo/dist/launch"
)

func ExampleRun() {
	err := launch.Run(context.Background(), launch.Options{
		N: 2, NoMPI: true, Command: []string{"sh", "-c", "echo rank $LAZO_RANK of $LAZO_SIZE"}, Stdout: os.Stdout, Stderr: os.Stderr, Verbose: true,
	})
	if err != nil {
		log.Fatal(err)
	}
	// Unordered output:
	// [0] rank 0 of 2
	// [1] rank 1 of 2
}
