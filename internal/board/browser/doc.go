// Package browser tests the board's page in Chromium. It is a separate module because of its dependencies.
package browser
