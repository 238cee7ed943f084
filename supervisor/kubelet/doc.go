// Package kubelet runs the node's kubelet: it asks it before a start whether it accepts a configuration, starts and stops it, watches its
// health and its watchdog pings, carries its log, and finds one that an earlier supervisor left behind.
//
// It knows neither what is assigned nor the API: it is given the path of a configuration file, and reports what happened through a func.
package kubelet
