// Package cmdutil has what all commands of the plugin share: the Factory with clients, streams and questions to
// the user, the flags of several commands, and shell completion.
package cmdutil
