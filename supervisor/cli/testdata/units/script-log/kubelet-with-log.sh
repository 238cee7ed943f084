#!/bin/bash
exec >>/var/log/kubelet.log 2>&1
/usr/bin/kubelet "$@"
