// Package cmdutil is what all commands of the plugin share: the Factory with the clients, the streams and the question to the user, the flags of several
// commands, and the completion of what is typed.
package cmdutil
