// Package browser tests the board's page in Chromium. It is a module of its own because of its dependencies.
package browser
