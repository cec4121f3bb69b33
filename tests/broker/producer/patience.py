"""A broker refuses what has queued for 200 ms, and everything while its log was locked for a second.

On a machine with other work to do that happens often, and is not what the tests are about.
"""

PATIENT = (("waitTimeMillsInSendQueue", "30000"), ("osPageCacheBusyTimeOutMills", "30000"))
